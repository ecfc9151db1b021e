package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/internal/reach/catalog"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
)

// Limits of one skill (SEP-2640, "Limits").
const (
	maxSkillFiles = 512
	maxSkillBytes = 16 << 20
)

// Call runs read_skill, and passes everything else on.
func (s *skilled) Call(ctx context.Context, call dragoman.Call) (dragoman.Result, error) {
	if !isReadSkill(call.Tool) {
		return s.Toolset.Call(ctx, call)
	}
	var wanted struct{ Skill, File string }
	if err := json.Unmarshal(call.Arguments, &wanted); err != nil {
		return refusedSkill("The arguments cannot be read."), nil
	}
	list, err := s.Toolset.List(ctx)
	if err != nil {
		return dragoman.Result{}, err
	}
	entries := s.skills(list)
	if wanted.Skill == "" {
		return allSkills(entries), nil
	}
	r := &reading{tools: s.Toolset, call: call}
	entry, problem := r.find(ctx, entries, wanted.Skill)
	if problem != "" {
		return refusedSkill(problem), nil
	}
	res, err := r.read(ctx, entry, wanted.File)
	if errors.Is(err, errStale) && call.Answers == nil {
		// The skill has changed since it was listed: what it is now counts.
		if entry, err = r.get(ctx, entry.Server, entry.Original); err == nil {
			res, err = r.read(ctx, entry, wanted.File)
		}
	}
	if refused, ok := errors.AsType[refusal](err); ok {
		return refusedSkill(string(refused)), nil
	}
	return res, err
}

// refusedSkill is the result of a call that cannot be answered.
func refusedSkill(why string) dragoman.Result {
	return dragoman.Result{Ran: dragoman.RanNot, Problem: &dragoman.Problem{Code: dragoman.CodeInvalidArguments, Message: why}}
}

// A refusal says in words for a model why a skill was not read.
type refusal string

func (r refusal) Error() string { return string(r) }

// errStale: a file is not what the skill's entry says of it. The content is not
// used (SEP-2640, "Verification on Read").
var errStale error = refusal("The file is not what its server says it is, so it was not read. Tell the user.")

// A reading is one call of the tool.
type reading struct {
	tools dragoman.Toolset
	call  dragoman.Call
}

// find returns the skill that a model means: by its name in the list, by its URI, or,
// unlisted, by a URI that only one server can mean.
func (r *reading) find(ctx context.Context, entries []dragoman.Entry, wanted string) (*dragoman.Entry, string) {
	var names []string
	servers := map[string]bool{}
	for i := range entries {
		if e := &entries[i]; e.Name == wanted || e.URI == wanted {
			return e, ""
		}
		names = append(names, entries[i].Name)
		servers[entries[i].Server] = true
	}
	label, original, says := catalog.SplitURI(wanted)
	if !says && len(servers) == 1 && strings.Contains(wanted, "://") {
		label, original = entries[0].Server, wanted
	}
	if servers[label] {
		if e, err := r.get(ctx, label, original); err == nil {
			return e, ""
		}
	}
	return nil, fmt.Sprintf("There is no skill %q. There are: %s.", wanted, shortened(strings.Join(names, ", ")))
}

// get asks a server for one skill.
func (r *reading) get(ctx context.Context, server, uri string) (*dragoman.Entry, error) {
	e := dragoman.Entry{Kind: dragoman.Skill, Server: server, Original: uri}
	res, err := r.tools.Call(ctx, dragoman.Call{
		ID: r.call.ID, Parent: r.call.Parent, Method: "skills/get", Entry: &e, Arguments: uriParams(uri),
	})
	if err != nil {
		return nil, err
	}
	o, bad := rawjson.ParseObject(res.Content)
	if bad != nil {
		return nil, errStale
	}
	e.Definition = o.Get("skill")
	skill, bad := rawjson.ParseObject(e.Definition)
	if bad != nil {
		return nil, errStale
	}
	if told, _ := rawjson.String(skill.Get("uri")); told != uri {
		return nil, errStale
	}
	e.URI = catalog.PublicURI(server, uri)
	return &e, nil
}

func uriParams(uri string) json.RawMessage {
	return append(append(json.RawMessage(`{"uri":`), rawjson.Quote(uri)...), '}')
}

// read reads a file of a skill at the server that has the skill, and nowhere else.
func (r *reading) read(ctx context.Context, e *dragoman.Entry, file string) (dragoman.Result, error) {
	skill, err := rawjson.ParseObject(e.Definition)
	if err != nil {
		return dragoman.Result{}, errStale
	}
	file = strings.TrimPrefix(path.Clean("/"+file), "/")
	if file == "" {
		file = "SKILL.md"
	}
	uri := strings.TrimSuffix(e.Original, "SKILL.md") + file
	m, err := readManifest(skill.Get("resources"))
	if err != nil {
		return dragoman.Result{}, err
	}
	if m.files != nil && m.files[uri] == (fileOfSkill{}) {
		return dragoman.Result{}, refusal(fmt.Sprintf("The skill has no file %q. It has: %s.", file, shortened(strings.Join(m.names(e), ", "))))
	}
	res, err := r.tools.Call(ctx, dragoman.Call{
		ID: r.call.ID, Parent: r.call.Parent, Method: "resources/read", Arguments: uriParams(uri),
		Entry: &dragoman.Entry{Kind: dragoman.Resource, Server: e.Server, Original: uri, URI: uri},
		Meta:  r.call.Meta, Can: r.call.Can, Answers: r.call.Answers, Progress: r.call.Progress, Notify: r.call.Notify,
	})
	if err != nil || res.Problem != nil || res.Asks != nil {
		return res, err
	}
	item, content, err := contentOf(res.Content, uri)
	if err != nil {
		return dragoman.Result{}, err
	}
	if m.files != nil && !m.files[uri].fits(content) {
		return dragoman.Result{}, errStale
	}
	if file == "SKILL.md" && !sameFrontmatter(content, skill.Get("frontmatter")) {
		return dragoman.Result{}, errStale
	}
	res.Content = m.shown(e, file, item, content)
	return res, nil
}

// contentOf returns the one item that resources/read brought, and its bytes.
func contentOf(result json.RawMessage, uri string) (item *rawjson.Object, content []byte, err error) {
	o, err := rawjson.ParseObject(result)
	if err != nil {
		return nil, nil, errStale
	}
	items, err := rawjson.Elements(o.Get("contents"))
	if err != nil {
		return nil, nil, errStale
	}
	for _, raw := range items {
		item, err := rawjson.ParseObject(raw)
		if err != nil {
			continue
		}
		if at, ok := rawjson.String(item.Get("uri")); ok && at != uri {
			continue
		}
		if text, ok := rawjson.String(item.Get("text")); ok {
			return item, []byte(text), nil
		}
		if blob, ok := rawjson.String(item.Get("blob")); ok {
			content, err := base64.StdEncoding.DecodeString(blob)
			if err != nil {
				return nil, nil, errStale
			}
			return item, content, nil
		}
	}
	return nil, nil, refusal("The server gave no such file.")
}

// What the YAML at the beginning of a SKILL.md may have at most: bytes, lists and maps
// that begin by a mark of their own, and line breaks with nothing between. Its parser copies
// for each what it is in, or what is in front of it, so that 64 KiB of brackets, or of empty
// lines at the end of a text, would keep a processor for a quarter of a minute.
const (
	maxFrontmatter = 64 << 10
	maxOpened      = 1000
	maxBlank       = 100
)

// sameFrontmatter reports whether a SKILL.md begins with the frontmatter that its
// entry has (SEP-2640, "Frontmatter Verification").
func sameFrontmatter(content []byte, want json.RawMessage) bool {
	rest, ok := bytes.CutPrefix(bytes.ReplaceAll(content, []byte("\r\n"), []byte("\n")), []byte("---\n"))
	front, _, found := bytes.Cut(rest, []byte("\n---"))
	if !ok || !found || len(front) > maxFrontmatter || blank(front) > maxBlank {
		return false
	}
	tokens := lexer.Tokenize(string(front))
	if opened(tokens) > maxOpened {
		return false
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil || len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return false
	}
	var aliases aliases
	if ast.Walk(&aliases, file.Docs[0].Body); aliases > 0 {
		return false // a few bytes can stand for gigabytes
	}
	asJSON, err := yaml.YAMLToJSON(front)
	var a, b any
	return err == nil && json.Unmarshal(asJSON, &a) == nil && json.Unmarshal(want, &b) == nil && reflect.DeepEqual(a, b)
}

// blank returns how many line breaks stand one after the other at the most, with nothing but
// spaces between.
func blank(text []byte) (most int) {
	n := 0
	for _, b := range text {
		switch b {
		case '\n', '\r':
			n++
			most = max(most, n)
		case ' ', '\t':
		default:
			n = 0
		}
	}
	return most
}

// opened counts the marks that begin a list, a map, or an element of one.
func opened(tokens token.Tokens) (n int) {
	for _, t := range tokens {
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType, token.SequenceEntryType, token.MappingKeyType:
			n++
		}
	}
	return n
}

// aliases counts the places where YAML says something again.
type aliases int

// Visit implements [ast.Visitor].
func (n *aliases) Visit(node ast.Node) ast.Visitor {
	if node.Type() == ast.AliasType {
		*n++
	}
	return n
}

// A manifest is what a skill's entry says of its files; no files where it says that
// they are dynamic.
type manifest struct {
	order []string
	files map[string]fileOfSkill
}

type fileOfSkill struct {
	digest string
	size   int
}

func (f fileOfSkill) fits(content []byte) bool {
	sum := sha256.Sum256(content)
	return len(content) == f.size && "sha256:"+hex.EncodeToString(sum[:]) == f.digest
}

func readManifest(resources json.RawMessage) (m manifest, err error) {
	if dynamic, _ := rawjson.String(resources); dynamic == "dynamic" {
		return m, nil
	}
	files, err := rawjson.Elements(resources)
	if err != nil || len(files) > maxSkillFiles {
		return m, refusal("The skill's list of files cannot be used.")
	}
	m.files = map[string]fileOfSkill{}
	total := 0
	for _, raw := range files {
		o, err := rawjson.ParseObject(raw)
		if err != nil {
			return m, refusal("The skill's list of files cannot be used.")
		}
		uri, _ := rawjson.String(o.Get("uri"))
		var f fileOfSkill
		f.digest, _ = rawjson.String(o.Get("digest"))
		f.size, _ = rawjson.Int(o.Get("size"))
		m.order, m.files[uri] = append(m.order, uri), f
		if total += f.size; f.size < 0 || total > maxSkillBytes {
			return m, refusal("The skill is larger than 16 MiB, so it was not read.")
		}
	}
	return m, nil
}

// names are the files of a skill by their paths in it.
func (m *manifest) names(e *dragoman.Entry) (names []string) {
	root := strings.TrimSuffix(e.Original, "SKILL.md")
	for _, uri := range m.order {
		if name, ok := strings.CutPrefix(uri, root); ok {
			names = append(names, name)
		}
	}
	return names
}

// shown is what a model is shown of a file: whose it is, and, with SKILL.md, what
// other files there are.
func (m *manifest) shown(e *dragoman.Entry, file string, item *rawjson.Object, content []byte) json.RawMessage {
	o := rawjson.Object{}
	o.Set("server", rawjson.Quote(e.Server))
	o.Set("skill", rawjson.Quote(e.URI))
	o.Set("file", rawjson.Quote(file))
	if names := m.names(e); file == "SKILL.md" && len(names) > 1 {
		listed, _ := json.Marshal(names)
		o.Set("files", listed)
	}
	if item.Get("text") != nil {
		o.Set("text", item.Get("text"))
		return json.RawMessage(`{"content":[],"structuredContent":` + string(o.Bytes()) + `}`)
	}
	o.Set("bytes", fmt.Appendf(nil, "%d", len(content)))
	return json.RawMessage(`{"content":[{"type":"resource","resource":` + string(item.Bytes()) + `}],"structuredContent":` + string(o.Bytes()) + `}`)
}

// allSkills lists all skills.
func allSkills(entries []dragoman.Entry) dragoman.Result {
	type line struct {
		Skill       string `json:"skill"`
		Server      string `json:"server"`
		Description string `json:"description"`
	}
	lines := make([]line, len(entries))
	for i, e := range entries {
		lines[i] = line{e.Name, e.Server, about(e)}
	}
	listed, err := json.Marshal(map[string][]line{"skills": lines})
	if err != nil {
		return refusedSkill("The skills cannot be listed.")
	}
	return dragoman.Result{Ran: dragoman.RanYes, Content: append(append([]byte(`{"content":[],"structuredContent":`), listed...), '}')}
}
