package dialect

import (
	"sync"

	dragoman "github.com/dragoman-mcp/dragoman"
)

// Conservative is the name of the dialect of an API that nobody recognised: the
// least that all others accept.
const Conservative = "conservative"

// A Dialect is what one provider or engine accepts. It is immutable, safe for
// concurrent use, and keeps the plans that it made.
type Dialect struct {
	spec    Spec
	options Options
	cache   planCache

	mu       sync.Mutex
	variants map[Options]*Dialect
}

// Options change how a dialect converts. The zero value is what is best for
// most.
type Options struct {
	// Loose keeps tools from being strict.
	Loose bool
	// ForceStrict makes tools strict also where optional and nullable
	// properties lose a difference by it: null then means absent.
	ForceStrict bool
	// KeepMaps keeps objects with arbitrary names or values as they are, where
	// the dialect would have them as pairs or as JSON text: a tool that has one
	// is then not strict.
	KeepMaps bool
	// Depth limits the nesting of objects and arrays, by flattening where that
	// is possible; 0 means what the dialect takes.
	Depth int
	// NoFormatChoice leaves out a tool's own parameter response_format, the choice
	// between JSON and Markdown, where the tool announces structured content: for
	// those who give models that content, as package result does in every form but
	// [result.Raw]. What a model sends in spite of it is taken.
	//
	// [result.Raw]: https://pkg.go.dev/github.com/dragoman-mcp/dragoman/result#Raw
	NoFormatChoice bool
}

// With returns the dialect with options. The same options give the same
// dialect, so that its plans stay cached.
func (d *Dialect) With(o Options) *Dialect {
	if o == d.options {
		return d
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if v := d.variants[o]; v != nil {
		return v
	}
	if d.variants == nil || len(d.variants) >= maxVariants {
		d.variants = map[Options]*Dialect{}
	}
	v := &Dialect{spec: d.spec, options: o}
	d.variants[o] = v
	return v
}

// forget gives up the plans of the dialect, with whatever options.
func (d *Dialect) forget() {
	d.cache.forget()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, v := range d.variants {
		v.forget()
	}
}

// maxVariants is the number of sets of options that are remembered.
const maxVariants = 16

// adjusted are rules with the options in them.
func (d *Dialect) adjusted(rules *Rules) *Rules {
	adjusted := *rules
	if d.options.Depth > 0 && (rules.Depth == 0 || rules.Depth > d.options.Depth) {
		adjusted.Depth = d.options.Depth
	}
	if d.options.KeepMaps {
		adjusted.MapsAsPairs = false
	}
	return &adjusted
}

// Spec is the data of a dialect.
type Spec struct {
	// Name is the name by which [For] finds it.
	Name string `json:"name" yaml:"name"`
	// Title says for people which API or engine it is.
	Title string `json:"title,omitempty" yaml:"title,omitempty"`
	// Hosts are the host names by which [ForHost] recognises it. A leading dot
	// stands for any subdomain; a path may follow.
	Hosts []string `json:"hosts,omitempty" yaml:"hosts,omitempty"`
	// Rules are what it takes in schemas.
	Rules Rules `json:"rules,omitempty" yaml:"rules,omitempty"`
	// Strict are the rules for strict tools; nil where there are none, or none
	// that are worth it.
	Strict *Rules `json:"strict,omitempty" yaml:"strict,omitempty"`
	// Wire is what it wants beside schemas.
	Wire Wire `json:"wire,omitempty" yaml:"wire,omitempty"`
}

// Name returns the dialect's name.
func (d *Dialect) Name() string { return d.spec.Name }

// Wire returns what the dialect wants beside schemas. It is shared and must not
// be changed.
func (d *Dialect) Wire() *Wire { return &d.spec.Wire }

// Plan converts a tool. The Problem, of code [dragoman.CodeInvalidTool], says
// that the tool cannot be used and where in its schema the reason is. A tool in
// quarantine has its own problem for a plan: nobody is told what its schema says. Plans
// are cached by the tool's Pin and its name.
func (d *Dialect) Plan(tool dragoman.Tool) (*Plan, *dragoman.Problem) {
	if tool.Quarantined != nil {
		return nil, tool.Quarantined
	}
	key := keyOf(&tool)
	if e, ok := d.cache.get(key); ok {
		return e.plan, e.problem
	}
	plan, problem := d.convert(tool)
	d.cache.put(key, cached{plan, problem})
	return plan, problem
}
