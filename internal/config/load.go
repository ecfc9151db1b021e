// Package config reads the one configuration file.
//
// [Find] says where the file is, [Load] reads it into a [File], [Default] is
// what holds without one. The file is YAML, and so JSON, too. Reading is
// strict: a key that does not exist, a value of the wrong kind, a key that
// stands twice are errors that name the line and show it; all of them are
// reported at once, as [Errors].
//
// File is made of the Config structs of the packages that use them. They carry
// their keys, descriptions and limits as struct tags, from which the reader,
// [Schema] and [Effective] are all derived, so that the three cannot differ.
//
// # Variables
//
// ${NAME}, ${env:NAME} and ${NAME:-default} in values are filled in from the
// environment, after parsing, so that a variable cannot become configuration.
// A variable that is not set is an error that names it, the key and the line.
// $$ writes a plain $. ${input:id} is an [Input]: a value that a person at a
// terminal is asked for, or that DRAGOMAN_INPUT_ID holds.
//
// # Other clients' files
//
// A block of servers that works for another client works here, under --mcp-config
// and copied into the file: other names of keys are understood, labels that tool
// names cannot carry are changed, and keys that only mean something to that
// client are ignored, which one warning says.
//
// # Secrets
//
// Values of api_key, api_keys, headers and env are never shown, wherever they
// come from; other values from the environment in models and mcpServers are
// shown as the reference that they were filled in from. That holds for
// Effective, for errors, and for the lines of the file that errors show.
//
// # Trust
//
// The file can start programs. So it is never looked for in the working
// directory, where a cloned repository could have put it, and a file that
// everybody may write is refused.
package config

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-mcp/dragoman/internal/state/store"
)

// maxFile is the largest configuration, in bytes; other clients keep more than
// servers in their files.
const (
	maxFile        = 1 << 20
	maxForeignFile = 16 << 20
)

// Find returns the path of the configuration file: flag if it is not empty,
// else $DRAGOMAN_CONFIG, else dragoman/config.yaml in the user's configuration
// directory if that exists (see [os.UserConfigDir]). It returns "" where there
// is none. The working directory is never searched.
func Find(flag string, lookup func(string) (string, bool)) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if path, _ := lookup("DRAGOMAN_CONFIG"); path != "" {
		return path, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", nil // no home: nothing can be there
	}
	path := filepath.Join(dir, "dragoman", "config.yaml")
	switch _, err := os.Stat(path); {
	case err == nil:
		return path, nil
	case os.IsNotExist(err):
		return "", nil
	default:
		return "", fmt.Errorf("looking for the configuration: %w", err)
	}
}

// tree parses data as JSON if it is JSON, else as YAML.
func tree(name string, data []byte) (*source, *node, *Error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	src := newSource(name, string(data))
	if !utf8.Valid(data) {
		return nil, nil, badText(src)
	}
	// JSON is YAML, but the YAML library takes tabs for a part of keys, and
	// editors' JSON has comments.
	if strings.HasPrefix(strings.TrimSpace(string(data)), "{") || filepath.Ext(name) == ".json" {
		root, failed := parseJSON(src, blankComments(data))
		if failed == nil || strings.HasPrefix(filepath.Ext(name), ".json") {
			return src, root, failed
		}
	}
	root, failed := parseYAML(src, data)
	return src, root, failed
}

// badText names the first line that is not UTF-8.
func badText(src *source) *Error {
	for i, line := range src.lines {
		if !utf8.ValidString(line) {
			return src.errorAt(i+1, 1, "", "this line is not UTF-8 text", "")
		}
	}
	return &Error{File: src.name, Message: "the file is not UTF-8 text"}
}

// readFile reads a file that may start programs.
func readFile(path string, limit int64) (data []byte, warnings Errors, err error) {
	file, err := os.Open(path)
	if err != nil {
		if reason, ok := err.(*fs.PathError); ok {
			err = reason.Err
		}
		return nil, nil, &Error{File: path, Message: fmt.Sprintf("the file cannot be read: %v", err)}
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, nil, &Error{File: path, Message: fmt.Sprintf("the file cannot be read: %v", err)}
	case info.IsDir():
		return nil, nil, &Error{File: path, Message: "this is a directory, not a configuration file"}
	}
	if runtime.GOOS != "windows" && info.Mode().IsRegular() {
		switch mode := info.Mode().Perm(); {
		case mode&0o002 != 0:
			return nil, nil, &Error{File: path, Message: "everybody on this machine may write this file, and it can start programs", Hint: "Run: chmod o-w " + quoteShell(path)}
		case mode&0o020 != 0:
			warnings = Errors{{File: path, Message: "a group may write this file, and it can start programs", Hint: "Run: chmod g-w " + quoteShell(path)}}
		}
	}
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, nil, &Error{File: path, Message: fmt.Sprintf("the file cannot be read: %v", err)}
	case int64(len(data)) > limit:
		return nil, nil, &Error{File: path, Message: "the file is larger than " + formatSize(limit)}
	}
	return data, warnings, nil
}

// quoteShell quotes a path for a line that a person may copy.
func quoteShell(path string) string {
	if strings.Trim(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-") == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// resolve makes paths absolute: those of servers, and the files of keys, of certificates,
// of policies, of pins and of the store. Relative ones start at dir, and ~/ at the user's home. Those of
// sandboxes are followed to where they lead now, and are no others later.
func (f *File) resolve(dir string) {
	place := func(key, was string, resolve func(string) string) string {
		path := resolve(absolute(dir, was))
		if ref, ok := f.refs[key]; ok && ref.value == was {
			f.refs[key] = reference{ref.written, path}
		}
		return path
	}
	asItIs := func(path string) string { return path }
	for label, server := range f.MCPServers {
		at := join("mcpServers", label)
		server.Dir = place(join(at, "cwd"), server.Dir, asItIs)
		for i, path := range server.Sandbox.Read {
			server.Sandbox.Read[i] = place(fmt.Sprintf("%s.sandbox.read[%d]", at, i), path, real)
		}
		for i, path := range server.Sandbox.Write {
			server.Sandbox.Write[i] = place(fmt.Sprintf("%s.sandbox.write[%d]", at, i), path, real)
		}
		for _, path := range server.TLS.Paths() {
			*path = absolute(dir, *path)
		}
		f.MCPServers[label] = server
	}
	f.Auth.KeysFile = absolute(dir, f.Auth.KeysFile)
	f.PolicyFile = absolute(dir, f.PolicyFile)
	for _, path := range []*string{&f.TLS.Cert, &f.TLS.Key, &f.TLS.ClientCA} {
		*path = absolute(dir, *path)
	}
	for i := range f.Models {
		for _, path := range f.Models[i].TLS.Paths() {
			*path = absolute(dir, *path)
		}
	}
	f.Pins.Lock = absolute(dir, f.Pins.Lock)
	f.Store.KeyFile = absolute(dir, f.Store.KeyFile)
	if f.Store.Path != store.Memory {
		f.Store.Path = absolute(dir, f.Store.Path)
	}
}

// absolute returns a path that starts at dir, or at the user's home, where it is
// neither empty nor absolute already.
func absolute(dir, path string) string {
	switch {
	case path == "":
		return ""
	case path == "~" || strings.HasPrefix(path, "~/"):
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, path[1:])
		}
	case !filepath.IsAbs(path):
		if dir, err := filepath.Abs(dir); err == nil {
			return filepath.Join(dir, path)
		}
	}
	return path
}

// keysName is the file of keys beside the configuration.
const keysName = "keys.jsonl"

// KeysFile returns where the keys of callers are: where the configuration says, or
// else beside the configuration, or, without one, where that would be. It is empty
// where the user has no home.
func (f *File) KeysFile() string {
	if f.Auth.KeysFile != "" {
		return f.Auth.KeysFile
	}
	if f.Path != "" {
		return absolute("", filepath.Join(filepath.Dir(f.Path), keysName))
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "dragoman", keysName)
}

// UseKeys makes the file of keys a part of the configuration where it does not name
// one and there is one. A file that cannot be looked at counts as one. Where there is
// none, its place is where it is awaited.
func (f *File) UseKeys() {
	path := f.KeysFile()
	if path == "" || f.Auth.KeysFile != "" {
		return
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		f.Auth.KeysFile = path
		return
	}
	f.Auth.Awaited = path
}
