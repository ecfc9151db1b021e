package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unicode/utf8"
)

// variablesFile is the key of editors for a file with variables for a server: lines of
// NAME=value, maybe behind "export", with comments behind #, and values in quotes where
// they have spaces at an end, a # or several lines.
const variablesFile = "envFile"

// maxVariables is the largest file of variables, in bytes.
const maxVariables = 1 << 20

// variablesOf returns the variables of the file that an entry names, but for those that
// the server's env has, too. Their values are as they stand there: no reference in them
// is filled in.
func (d *decoder) variablesOf(e entry, path string, env *node) (variables []entry) {
	if d.unneeded(path) || d.unsetOK {
		return nil
	}
	if e.value.kind != stringKind {
		d.wrong(e.value, path, "text")
		return nil
	}
	name, _, ok := d.scalar(e.value, path)
	if !ok || name == "" {
		return nil
	}
	delete(d.refs, path) // it is no key of ours
	if name = absolute(filepath.Dir(d.src.name), name); !filepath.IsAbs(name) {
		return nil
	}
	d.variables = append(d.variables, name)
	text, err := readVariables(name)
	if err != nil {
		d.fail(e.value, path, fmt.Sprintf("%s: the file of variables cannot be read: %s", path, unread(err)), "")
		return nil
	}
	values, line := parseVariables(text)
	if line > 0 {
		d.fail(e.value, path, fmt.Sprintf("%s: line %d of %s is no NAME=value", path, line, name), "")
		return nil
	}
	for _, v := range values {
		if env.get(v.name) == nil {
			variables = append(variables, entry{v.name, e.line, e.column, &node{kind: stringKind, text: v.value, literal: true, line: e.value.line, column: e.value.column}})
		}
	}
	return variables
}

// A variable is one of a file of variables.
type variable struct{ name, value string }

// parseVariables reads a file of variables, of which the last of one name counts. line
// is the first that cannot be read; 0 where all can.
func parseVariables(text []byte) (variables []variable, line int) {
	if !utf8.Valid(text) || bytes.IndexByte(text, 0) >= 0 {
		return nil, 1
	}
	rest := strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n")
	at := map[string]int{}
	for line = 1; rest != ""; {
		begun := rest
		first, after, _ := strings.Cut(rest, "\n")
		if first = strings.TrimSpace(first); first == "" || first[0] == '#' {
			rest, line = after, line+1
			continue
		}
		v, after, ok := parseVariable(strings.TrimLeft(rest, " \t"))
		if !ok {
			return nil, line
		}
		rest = after
		line += strings.Count(begun[:len(begun)-len(rest)], "\n")
		if i, have := at[v.name]; have {
			variables[i] = v
			continue
		}
		at[v.name] = len(variables)
		variables = append(variables, v)
	}
	return variables, 0
}

// parseVariable reads the variable that text begins with, and returns what is behind
// its line, or, where its value is in quotes, its lines.
func parseVariable(text string) (v variable, rest string, ok bool) {
	if behind, found := strings.CutPrefix(text, "export"); found && strings.TrimLeft(behind, " \t") != behind {
		text = strings.TrimLeft(behind, " \t")
	}
	name, value, found := strings.Cut(text, "=")
	v.name = strings.TrimRight(name, " \t")
	if !found || !variableName(v.name) {
		return v, "", false
	}
	value = strings.TrimLeft(value, " \t")
	if value == "" || strings.IndexByte("\"'`", value[0]) < 0 {
		value, rest, _ = strings.Cut(value, "\n")
		if value == "" || value[0] == '#' {
			return v, rest, true
		}
		if comment := strings.Index(value, " #"); comment >= 0 {
			value = value[:comment]
		}
		v.value = strings.TrimSpace(value)
		return v, rest, true
	}
	quote := value[0]
	end := closingQuote(value)
	if end < 0 {
		return v, "", false
	}
	behind, rest, _ := strings.Cut(value[end+1:], "\n")
	if behind = strings.TrimSpace(behind); behind != "" && behind[0] != '#' {
		return v, "", false
	}
	v.value = value[1:end]
	if quote == '"' {
		v.value = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r", `\t`, "\t", `\"`, `"`).Replace(v.value)
	}
	return v, rest, true
}

// closingQuote returns the index of the quote that closes the one that text begins
// with; -1 where there is none. Only between double quotes a backslash escapes one.
func closingQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && text[0] == '"':
			i++
		case text[i] == text[0]:
			return i
		}
	}
	return -1
}

// readVariables returns the text of a file of variables.
func readVariables(name string) ([]byte, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is no regular file")
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0:
		return nil, errors.New("everybody on this machine may write it, and it can start programs (run chmod o-w on it)")
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxVariables+1))
	if len(text) > maxVariables {
		return nil, errors.New("it is larger than " + formatSize(maxVariables))
	}
	return text, err
}

// unread says why a file could not be read, without its path, which may hold what came
// from the environment.
func unread(err error) string {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		err = failed.Err
	}
	return err.Error()
}
