package config

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
)

// expander fills in references to environment variables in values. It works on
// strings that were parsed, so what a variable holds cannot become YAML.
//
//	${NAME}            the variable; it is an error if it is not set
//	${env:NAME}        the same, as some editors write it
//	{env:NAME}         the same in another client's file, as opencode writes it
//	${NAME:-default}   default where the variable is not set or empty
//	${input:id}        the answer to an input
//	${userHome}        and others that editors know: see editorVariable
//	$$                 one $, in a file of ours
//
// A $ before anything else is itself.
type expander struct {
	lookup func(string) (string, bool)
	// input answers ${input:id}.
	input func(id string) (string, *referenceError)
	// folder is the workspace that the file belongs to; empty where it is no editor's
	// file of a workspace.
	folder string
	// plainDollars leaves $$ as it is: other clients' files have no escape.
	plainDollars bool
}

// A referenceError is a reference that cannot be filled in.
type referenceError struct{ message, hint string }

// bareReference is a reference that may lack its $.
var bareReference = pattern.Of(`\$?\{env:([A-Za-z_][A-Za-z0-9_]*)\}`)

// maxNesting is how deep defaults can hold further references.
const maxNesting = 8

// expand returns text with its references filled in, and whether it had any.
func (e expander) expand(text string, nesting int) (expanded string, filled bool, failed *referenceError) {
	if e.plainDollars && strings.Contains(text, "{env:") {
		text = bareReference.ReplaceAllString(text, "$${env:$1}")
	}
	if strings.IndexByte(text, '$') < 0 {
		return text, false, nil
	}
	var b strings.Builder
	for {
		i := strings.IndexByte(text, '$')
		if i < 0 || i == len(text)-1 {
			b.WriteString(text)
			return b.String(), filled, nil
		}
		b.WriteString(text[:i])
		switch text = text[i:]; {
		case text[1] == '$' && !e.plainDollars:
			b.WriteByte('$')
			text = text[2:]
		case text[1] == '{':
			length := closingBrace(text)
			if length < 0 {
				return "", true, &referenceError{"a ${ without its }", e.dollarHint()}
			}
			value, failed := e.reference(text[2:length], nesting)
			if failed != nil {
				return "", true, failed
			}
			b.WriteString(value)
			text, filled = text[length+1:], true
		default:
			b.WriteByte('$')
			text = text[1:]
		}
	}
}

func (e expander) dollarHint() string {
	if e.plainDollars {
		return ""
	}
	return "Write $$ for a plain $."
}

// closingBrace returns the index of the brace that closes the one at text[1].
func closingBrace(text string) int {
	depth := 0
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// reference returns the value of what stands between ${ and }.
func (e expander) reference(text string, nesting int) (string, *referenceError) {
	if id, ok := strings.CutPrefix(text, "input:"); ok && inputID(id) && e.input != nil {
		return e.input(id)
	}
	name, fallback, hasFallback := strings.Cut(text, ":-")
	name = strings.TrimPrefix(name, "env:")
	if secret := secretOf(text); secret != "" {
		name = secret
	}
	if !variableName(name) {
		if value, known, failed := e.editorVariable(name); known {
			return value, failed
		}
		return "", &referenceError{fmt.Sprintf("${%s} is not a reference to a variable", text), e.dollarHint()}
	}
	value, ok := e.lookup(name)
	switch {
	case ok && (value != "" || !hasFallback):
		return value, nil
	case hasFallback:
		if nesting >= maxNesting {
			return "", &referenceError{message: "defaults are nested too deep"}
		}
		value, _, failed := e.expand(fallback, nesting+1)
		return value, failed
	}
	if value, known, failed := e.editorVariable(name); known {
		return value, failed
	}
	return "", &referenceError{
		fmt.Sprintf("the environment variable %s is not set", name),
		fmt.Sprintf("Set it, or give a default: ${%s:-default}.", name),
	}
}

func variableName(name string) bool {
	for i := range len(name) {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// editorVariable returns the value of a variable that editors fill in, or says why there
// is none here. It reports whether the name is one of those.
func (e expander) editorVariable(name string) (value string, known bool, failed *referenceError) {
	prefix, _, _ := strings.Cut(name, ":")
	switch prefix {
	case "workspaceFolder", "workspaceRoot", "cwd":
		if e.folder != "" && prefix == name {
			return e.folder, true, nil
		}
	case "workspaceFolderBasename":
		if e.folder != "" {
			return filepath.Base(e.folder), true, nil
		}
	case "file", "fileDirname", "relativeFile":
	case "userHome":
		if home, ok := e.home(); ok {
			return home, true, nil
		}
		return "", true, &referenceError{"${userHome} is not known: there is no HOME in the environment", "Write the path."}
	case "pathSeparator", "/":
		return string(filepath.Separator), true, nil
	case "command", "config":
		return "", true, &referenceError{fmt.Sprintf("${%s} is known to an editor only", name), "Write the value."}
	default:
		return "", false, nil
	}
	return "", true, &referenceError{fmt.Sprintf("${%s} is known to an editor only: there is no workspace here", name), "Write the path."}
}

// home returns the user's home.
func (e expander) home() (string, bool) {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	home, ok := e.lookup(name)
	return home, ok && home != ""
}

// secretOf returns the variable of a reference such as ${{ secrets.NAME }}, which one
// client has for what a person stores there; empty for other references.
func secretOf(text string) string {
	inner, ok := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	name, isSecret := strings.CutPrefix(strings.TrimSpace(inner), "secrets.")
	if !ok || !closed || !isSecret || !variableName(name) {
		return ""
	}
	return name
}

// editorFolders are the folders in which editors keep the files of a workspace.
var editorFolders = []string{".amazonq", ".codex", ".continue", ".cursor", ".gemini", ".idea", ".junie", ".kiro", ".qwen", ".roo", ".vscode", ".zed"}

// workspace returns the workspace that a file of an editor belongs to: the folder in
// which the editor's own folder is, unless that is the user's home, whose files are for
// all workspaces. It is empty for other files.
func (e expander) workspace(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	dir := filepath.Dir(path)
	for range 2 { // .continue/mcpServers/one.yaml
		if slices.Contains(editorFolders, filepath.Base(dir)) {
			folder := filepath.Dir(dir)
			if home, ok := e.home(); ok && filepath.Clean(home) == folder {
				return ""
			}
			return folder
		}
		dir = filepath.Dir(dir)
	}
	return ""
}
