package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// A Table is a set of dialects. The zero value is of no use; see [Builtin] and
// [Table.Derive]. It is immutable.
type Table struct{ dialects map[string]*Dialect }

var builtin = func() *Table {
	t := &Table{dialects: make(map[string]*Dialect, len(table))}
	for _, s := range table {
		t.dialects[s.Name] = &Dialect{spec: s}
	}
	return t
}()

// Builtin returns the table that the package comes with.
func Builtin() *Table { return builtin }

// For returns the dialect of a name in the built-in table; [Names] lists them.
func For(name string) (*Dialect, error) { return builtin.For(name) }

// Names returns the names of the built-in dialects, sorted.
func Names() []string { return builtin.Names() }

// ForHost recognises the dialect of an API by its base URL, in the built-in
// table. It returns the [Conservative] one when it knows neither the host nor
// the path.
func ForHost(baseURL string) *Dialect { return builtin.ForHost(baseURL) }

// For returns the dialect of a name.
func (t *Table) For(name string) (*Dialect, error) {
	if d := t.dialects[name]; d != nil {
		return d, nil
	}
	return nil, fmt.Errorf("unknown dialect %q; known are %s", name, strings.Join(t.Names(), ", "))
}

// Forget gives up the plans that the dialects of the table keep, for a program that is short
// of memory. They are made again as they are asked for.
func (t *Table) Forget() {
	for _, d := range t.dialects {
		d.forget()
	}
}

// Names returns the names of all dialects, sorted.
func (t *Table) Names() []string { return slices.Sorted(maps.Keys(t.dialects)) }

// ForHost is the function of that name, for this table.
func (t *Table) ForHost(baseURL string) *Dialect {
	best, length := t.dialects[Conservative], 0
	u, err := url.Parse(baseURL)
	if err != nil {
		return best
	}
	host, path := strings.ToLower(u.Host), strings.ToLower(u.Path)
	for _, name := range t.Names() {
		for _, pattern := range t.dialects[name].spec.Hosts {
			if matchesHost(pattern, host, path) && len(pattern) > length {
				best, length = t.dialects[name], len(pattern)
			}
		}
	}
	return best
}

// Derive returns a table with one dialect more, or another one in the place of
// one of the same name. It begins as a copy of base, or where that is empty of
// the dialect of the same name, or of the [Conservative] one. decode then fills
// spec, a *[Spec], from wherever users write it, such as YAML: what it leaves alone
// stays, and cells are laid over those of base. Hosts are not taken over from a base
// of another name.
func (t *Table) Derive(name, base string, decode func(spec any) error) (*Table, error) {
	if base == "" {
		if base = Conservative; t.dialects[name] != nil {
			base = name
		}
	}
	from, err := t.For(base)
	if err != nil {
		return nil, fmt.Errorf("dialect %q: %w", name, err)
	}
	spec, err := from.spec.clone()
	if err != nil {
		return nil, fmt.Errorf("dialect %q: %w", name, err)
	}
	if base != name {
		spec.Hosts = nil
	}
	spec.Rules.Cells = nil
	if spec.Strict != nil {
		spec.Strict.Cells = nil
	}
	if err := decode(&spec); err != nil {
		return nil, fmt.Errorf("dialect %q: %w", name, err)
	}
	spec.Name = name
	spec.Rules.over(&from.spec.Rules)
	if spec.Strict != nil && from.spec.Strict != nil {
		spec.Strict.over(from.spec.Strict)
	}
	if err := spec.validate(); err != nil {
		return nil, fmt.Errorf("dialect %q: %w", name, err)
	}
	derived := &Table{dialects: maps.Clone(t.dialects)}
	derived.dialects[name] = &Dialect{spec: spec}
	return derived, nil
}

// clone is a deep copy, through the form that users write.
func (s *Spec) clone() (Spec, error) {
	var c Spec
	b, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	return c, err
}

// over lays the cells of r over those of base.
func (r *Rules) over(base *Rules) {
	own := r.Cells
	r.Cells = maps.Clone(base.Cells)
	if r.Cells == nil {
		r.Cells = map[Feature]Cell{}
	}
	maps.Copy(r.Cells, own)
}

// validate refuses what no dialect can mean.
func (s *Spec) validate() error {
	if s.Name == "" {
		return errors.New("it has no name")
	}
	for _, pattern := range s.Hosts {
		if err := validHost(pattern); err != nil {
			return fmt.Errorf("hosts: %w", err)
		}
	}
	if !slices.Contains([]string{"", "envelope", "text"}, s.Wire.Result) {
		return fmt.Errorf("result: %q is neither envelope nor text", s.Wire.Result)
	}
	if n := s.Wire.MaxTools; n < 0 {
		return fmt.Errorf("max_tools: %d is less than none; 0 is no limit", n)
	}
	if n := s.Wire.MaxNameLength; n != 0 && n < shortestName {
		return fmt.Errorf("max_name_length: %d is too short: a name that had to be cut takes %d characters", n, shortestName)
	}
	if s.Wire.CallID != "" {
		if _, err := regexp.Compile(s.Wire.CallID); err != nil {
			return fmt.Errorf("call_id: %w", err)
		}
	}
	for _, choice := range s.Wire.ToolChoice {
		if !slices.Contains([]string{"auto", "none", "required", "named"}, choice) {
			return fmt.Errorf("tool_choice: %q is none of auto, none, required, named", choice)
		}
	}
	for _, r := range []*Rules{&s.Rules, s.Strict} {
		if r == nil {
			continue
		}
		if err := r.validate(); err != nil {
			return err
		}
	}
	return nil
}

// validHost refuses a pattern that no address matches.
func validHost(pattern string) error {
	if _, host, ok := strings.Cut(pattern, "://"); ok {
		return fmt.Errorf("%q is an address: write %q", pattern, host)
	}
	if host, _, _ := strings.Cut(pattern, "/"); host == "" || strings.ContainsAny(host, " \t@") {
		return fmt.Errorf("%q does not begin with a host, such as llm.example.com", pattern)
	}
	return nil
}

func (r *Rules) validate() error {
	for f, c := range r.Cells {
		if !slices.Contains(Features, f) {
			return fmt.Errorf("cells: unknown feature %q", f)
		}
		switch c.Support {
		case Taken, "taken", Ignored, Hidden, Rejected:
		default:
			return fmt.Errorf("cells: %s: %q is none of ignored, hidden, rejected", f, c.Support)
		}
	}
	if _, err := regexp.Compile(r.PropertyName); err != nil {
		return fmt.Errorf("property_name: %w", err)
	}
	if !slices.Contains([]string{"", "int64", "double"}, r.Bounds) {
		return fmt.Errorf("bounds: %q is none of int64, double", r.Bounds)
	}
	if !slices.Contains([]string{"", "whole", "exact"}, r.Tuples) {
		return fmt.Errorf("tuples: %q is none of whole, exact", r.Tuples)
	}
	if _, err := regexp.Compile(r.Literals); err != nil {
		return fmt.Errorf("literals: %w", err)
	}
	if _, err := regexp.Compile(r.NamesBesideOpen); err != nil {
		return fmt.Errorf("names_beside_open: %w", err)
	}
	if !slices.Contains([]string{"", "union"}, r.Any) {
		return fmt.Errorf("any: %q is not union", r.Any)
	}
	if !slices.Contains([]string{"", "closed", "all_required"}, r.Form) {
		return fmt.Errorf("form: %q is neither closed nor all_required", r.Form)
	}
	return nil
}

func matchesHost(pattern, host, path string) bool {
	pattern, prefix, _ := strings.Cut(strings.ToLower(pattern), "/")
	prefix = strings.TrimSuffix(prefix, "/")
	if !strings.Contains(pattern, ":") {
		host, _, _ = strings.Cut(host, ":")
	}
	if strings.HasPrefix(pattern, ".") {
		return strings.HasSuffix(host, pattern) && inside(path, prefix)
	}
	if strings.HasPrefix(pattern, "*:") {
		return strings.HasSuffix(host, pattern[1:]) && inside(path, prefix)
	}
	return host == pattern && inside(path, prefix)
}

// inside reports whether a path lies below a prefix, on whole segments.
func inside(path, prefix string) bool {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(path, "/"), prefix)
	return ok && (prefix == "" || rest == "" || rest[0] == '/')
}
