package config

import (
	"bytes"
	"crypto/sha256"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// A Reader reads configuration files. The zero Reader knows no variables and
// asks nobody.
type Reader struct {
	// Lookup finds environment variables, like [os.LookupEnv]; nil finds none.
	Lookup func(name string) (value string, ok bool)
	// Ask asks a person for an input that the environment does not answer; nil
	// where there is nobody to ask. An error ends reading. It is called at most
	// once for each input, and not once anything is wrong with the file.
	Ask func(Input) (string, error)
	// Needs are patterns (* and ?) of the keys that are of use to whoever reads the
	// file, such as store.*; nil for all of them. Of all others a variable that is not
	// set is no error: their values stay as they are written, and sections with such
	// values are not checked. So nobody needs the secrets of servers to look at a log.
	Needs []string
}

func (r Reader) lookup(name string) (string, bool) {
	if r.Lookup == nil {
		return "", false
	}
	return r.Lookup(name)
}

// Load reads the file at path. What is wrong in it is returned as [Errors].
func (r Reader) Load(path string) (*File, error) {
	return load(path, maxFile, r.Parse)
}

// load reads a file of at most so many bytes, as parse understands it.
func load(path string, most int64, parse func(name string, data []byte) (*File, error)) (*File, error) {
	data, warnings, err := readFile(path, most)
	if err != nil {
		return nil, err
	}
	f, err := parse(path, data)
	if err != nil {
		return nil, err
	}
	f.Warnings = append(warnings, f.Warnings...)
	f.read = map[string]Sum{path: sha256.Sum256(data)}
	f.resolve(filepath.Dir(path))
	return f, nil
}

// Parse reads the text of a configuration. name stands in errors. Unlike
// [Reader.Load] it leaves relative working directories of servers as they are.
func (r Reader) Parse(name string, data []byte) (*File, error) {
	src, root, failed := tree(name, data)
	if failed != nil {
		return nil, Errors{failed}
	}
	d := r.decoder(src)
	return d.file(d.adaptRoot(root))
}

// decoder returns a decoder for a file of ours.
func (r Reader) decoder(src *source) *decoder {
	d := &decoder{src: src, refs: make(map[string]reference)}
	d.inputs = inputs{reader: r}
	d.expand = expander{lookup: r.lookup, input: d.answer}
	return d
}

// answer returns the answer to an input. Once something is wrong nobody is
// asked: the answers would be for nothing.
func (d *decoder) answer(id string) (string, *referenceError) {
	if len(d.errs) == 0 || d.inputs.reader.Ask == nil {
		return d.inputs.value(id)
	}
	unasked := inputs{reader: d.inputs.reader, declared: d.inputs.declared}
	unasked.reader.Ask = func(Input) (string, error) { return "", nil }
	return unasked.value(id)
}

// ReadMCP reads the MCP servers from another client's file, which is JSON,
// maybe with comments, YAML or TOML, and holds them under mcpServers, servers,
// mcp.servers, context_servers or mcp_servers, by their labels or as a list.
// Everything else in the file is left alone, but for the inputs that its servers
// refer to. The result is a [File] with nothing but these and defaults, for
// [File.UseServers].
//
// A server that cannot be used is left out (see [File.LeftOut]) and harms no
// other: the file is not ours to put right. Keys that mean nothing to us become a
// warning. Labels that we could not use are changed, with a warning. References to
// environment variables are filled in as in our own files, except that $$ is two
// dollars, and that TOML has none; ${workspaceFolder} is the folder of the file's
// workspace where it has one.
func (r Reader) ReadMCP(path string) (*File, error) {
	return load(path, maxForeignFile, r.parseMCP)
}

// foreignTree is tree, for files that may be TOML as well.
func foreignTree(name string, data []byte) (*source, *node, *Error) {
	if !strings.EqualFold(filepath.Ext(name), ".toml") {
		return tree(name, data)
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	src := newSource(name, string(data))
	if !utf8.Valid(data) {
		return nil, nil, badText(src)
	}
	src.unshown = true
	root, failed := parseTOML(src, data)
	return src, root, failed
}

func (r Reader) parseMCP(name string, data []byte) (*File, error) {
	src, root, failed := foreignTree(name, data)
	if failed != nil {
		return nil, Errors{failed}
	}
	found := foreignServers(root)
	if found == nil {
		return nil, Errors{src.errorAt(root.line, root.column, "", "there are no MCP servers in this file", `They are expected under "mcpServers", "servers", "mcp", "context_servers" or "mcp_servers".`)}
	}
	d := r.decoder(src)
	d.lenient, d.expand.plainDollars, d.expand.folder = true, true, d.expand.workspace(name)
	sections := []entry{{serversKey, found.line, found.column, found}}
	if list := foreignInputs(root); list != nil {
		sections = append(sections, entry{inputsKey, list.line, list.column, list})
	}
	return d.file(&node{kind: mapKind, line: root.line, column: root.column, entries: sections})
}

// Load is [Reader.Load] without anybody to ask.
func Load(path string, lookup func(string) (string, bool)) (*File, error) {
	return Reader{Lookup: lookup}.Load(path)
}

// Parse is [Reader.Parse] without anybody to ask.
func Parse(name string, data []byte, lookup func(string) (string, bool)) (*File, error) {
	return Reader{Lookup: lookup}.Parse(name, data)
}

// ReadMCP is [Reader.ReadMCP] without anybody to ask.
func ReadMCP(path string, lookup func(string) (string, bool)) (*File, error) {
	return Reader{Lookup: lookup}.ReadMCP(path)
}
