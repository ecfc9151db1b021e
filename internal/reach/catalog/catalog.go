// Package catalog gives tools their public names: the names under which models,
// people and MCP clients know the tools of all servers.
//
// A public name is made from the server's label and the tool's own name there,
// `<label>__<original>`, and from nothing else, so that it stays the same when
// servers come and go. It matches ^[a-zA-Z][a-zA-Z0-9_-]{0,63}$, which every
// provider takes. Names are looked up in a table, never split.
package catalog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/state/weakcache"
	"github.com/dragoman-mcp/dragoman/internal/text/qualified"
)

// Strategy says what stands in front of a tool's own name.
type Strategy string

// The strategies. The zero Strategy means Label.
const (
	// Label is the server's label in the configuration.
	Label Strategy = "label"
	// Random is six letters and digits that look random and follow from where
	// the server is, so that they are the same after a restart.
	Random Strategy = "random"
	// Host is the host of the server's URL; the label where it has none.
	Host Strategy = "host"
	// None is nothing: for a single server.
	None Strategy = "none"
)

// Reserved are names that belong to tools of our own.
var Reserved = map[string]bool{"read_more": true, "find_tools": true, "call_tool": true, "read_skill": true, "review_approvals": true}

// MaxName is the length of a public name.
const MaxName = 64

// Config says how names are made.
type Config struct {
	Strategy Strategy
	// Bare is the label of a server whose tools have nothing in front of their names;
	// empty for none.
	Bare string
	// Identity returns where a server is: its URL or its command. It must say the
	// same after a restart. Nil means that the label is all that is known.
	Identity func(label string) string
}

// Catalog is a toolset that names. It is safe for concurrent use, and two of the
// same toolset are equal.
type Catalog struct {
	inner  dragoman.Toolset
	naming *naming
}

// naming is the names that were given, by the lists that they were given to.
type naming struct {
	config Config
	lists  weakcache.Map[dragoman.List, *dragoman.List]
	tools  weakcache.Map[dragoman.Tools, *dragoman.Tools]
}

// New returns a Catalog of the tools of inner, whose Server and Original are
// set.
func New(inner dragoman.Toolset, config Config) Catalog {
	return Catalog{inner, &naming{config: config}}
}

// Of returns a Catalog of the tools of another toolset. It shares with c what both
// name alike.
func (c Catalog) Of(inner dragoman.Toolset) Catalog { return Catalog{inner, c.naming} }

// List returns the list of the inner toolset with its tools named and sorted by
// server and original name, and its entries named and sorted by server. While the
// inner list stays the same, so does this one, and while its tools do, so do these.
func (c Catalog) List(ctx context.Context) (*dragoman.List, error) {
	list, err := c.inner.List(ctx)
	if err != nil {
		return nil, err
	}
	return c.naming.lists.Get(list, func() *dragoman.List { return c.naming.list(list) }), nil
}

func (n *naming) list(list *dragoman.List) *dragoman.List {
	named := *list
	if list.Tools != nil {
		named.Tools = n.tools.Get(list.Tools, func() *dragoman.Tools { return dragoman.NewTools(Name(list.Tools.All(), n.config)) })
	}
	named.Entries = NameEntries(list.Entries, n.config)
	return &named
}

// Call passes a call on.
func (c Catalog) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	return c.inner.Call(ctx, call)
}

// Name returns a copy of tools with public names, sorted by server
// and original name. A second tool of the same name on the same server is
// quarantined: nobody could call it.
func Name(tools []dragoman.Tool, config Config) []dragoman.Tool {
	named := slices.Clone(tools)
	slices.SortStableFunc(named, func(a, b dragoman.Tool) int {
		return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Original, b.Original))
	})
	prefixes := map[string]string{}
	same := 0 // tools in a row that share server and original name
	altered := make([]bool, len(named))
	count, plain := map[string]int{}, map[string]int{} // plain: not altered
	for i := range named {
		t := &named[i]
		prefix, ok := prefixes[t.Server]
		if !ok {
			prefix = config.prefix(t.Server)
			prefixes[t.Server] = prefix
		}
		t.Name, altered[i] = mint(prefix, t)
		if i > 0 && named[i-1].Server == t.Server && named[i-1].Original == t.Original {
			if t.Quarantined == nil {
				t.Quarantined = &dragoman.Problem{
					Code:    dragoman.CodeInvalidTool,
					Message: fmt.Sprintf("The server %q lists two tools named %q; only the first can be called.", t.Server, t.Original),
				}
			}
			same++
			t.Name, altered[i] = hashed(t.Name, t, same), false
			continue
		}
		same = 0
		count[t.Name]++
		if !altered[i] {
			plain[t.Name]++
		}
	}
	for i := range named {
		t := &named[i]
		// Where several tools map to one name, the one that has it by itself
		// keeps it; two servers of one host both have it by themselves.
		if count[t.Name] > 1 && (altered[i] || plain[t.Name] > 1) || Reserved[t.Name] {
			t.Name = hashed(t.Name, t, 0)
		}
	}
	return named
}

// prefix returns what stands in front of the names of a server's tools.
func (c Config) prefix(label string) string {
	identity := ""
	if c.Identity != nil {
		identity = c.Identity(label)
	}
	if c.Bare != "" && label == c.Bare {
		return ""
	}
	switch c.Strategy {
	case None:
		return ""
	case Random:
		sum := sha256.Sum256([]byte(cmp.Or(identity, label)))
		return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:6] + qualified.Separator
	case Host:
		if u, err := url.Parse(identity); err == nil && u.Hostname() != "" {
			return u.Hostname() + qualified.Separator
		}
	}
	return qualified.Name(label, "")
}

// Names reports whether a public name is one that a server's tools have where names
// begin with labels.
func Names(label, name string) bool {
	return strings.HasPrefix(name, spelled(qualified.Name(label, "")))
}

// mint makes a tool's name from its prefix and its own name. altered reports
// that another tool could get the same one.
func mint(prefix string, t *dragoman.Tool) (name string, altered bool) {
	name = spelled(prefix + t.Original)
	if len(name) > MaxName || strings.Trim(name, "_") == "" {
		return hashed(name, t, 0), false
	}
	return name, !strings.HasSuffix(name, t.Original) || len(t.Original) == 0
}

// spelled returns a name in the letters that public names have.
func spelled(want string) string {
	b := make([]byte, 0, len(want)+1)
	for _, r := range want {
		if r < 0x80 && (r == '_' || r == '-' || r >= '0' && r <= '9' || isLetter(byte(r))) {
			b = append(b, byte(r))
		} else {
			b = append(b, '_')
		}
	}
	if len(b) == 0 || !isLetter(b[0]) {
		b = append([]byte{'t'}, b...)
	}
	return string(b)
}

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// hashed returns name cut so that a digest of the tool's identity fits behind
// it. same tells tools apart that share their identity.
func hashed(name string, t *dragoman.Tool, same int) string {
	identity := t.Server + "\x00" + t.Original
	if same > 0 {
		identity += fmt.Sprintf("\x00%d", same)
	}
	sum := sha256.Sum256([]byte(identity))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), MaxName-len(suffix))] + suffix
}
