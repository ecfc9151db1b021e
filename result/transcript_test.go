package result

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
	"time"

	"github.com/dragoman-mcp/dragoman"
	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

var update = flag.Bool("update", false, "write the transcripts in testdata anew")

// TestTranscripts runs the cases in testdata/messages. Each is a txtar archive:
//
//	shape       options, one per line, as fields of Shape
//	result.json an MCP result; a template in which repeat N TEXT helps
//	problem     instead: fields of a dragoman.Problem as JSON
//	message     what the model gets; HANDLE stands for the random handle
//	images      the data URLs that go along
//	people      what is shown to people only
//	args        of read_more, one JSON object per line; HANDLE is filled in
//	pages       what it answers, one message per line
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/messages/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			in := map[string]string{}
			for _, f := range archive.Files {
				in[f.Name] = string(f.Data)
			}
			got := play(t, in)
			var out []txtar.File
			for _, name := range []string{"shape", "problem", "result.json", "message", "images", "people", "args", "pages"} {
				text, input := in[name]
				if _, produced := got[name]; produced || name == "message" || name == "images" || name == "people" || name == "pages" {
					text, input = got[name], produced
				}
				if input {
					out = append(out, txtar.File{Name: name, Data: []byte(text)})
				}
			}
			if *update {
				archive.Files = out
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(txtar.Format(archive)), string(txtar.Format(&txtar.Archive{Comment: archive.Comment, Files: out}))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func play(t *testing.T, in map[string]string) map[string]string {
	shape := &Shape{Shelf: &Shelf{}, Caller: "ann"}
	setOptions(t, shape, in["shape"])
	res := dragoman.Result{Info: dragoman.Info{Duration: 22 * time.Millisecond}}
	if problem, ok := in["problem"]; ok {
		if err := json.Unmarshal([]byte(problem), &res.Problem); err != nil {
			t.Fatal(err)
		}
	} else {
		res.Content = expand(t, in["result.json"])
	}
	m := shape.Message(call, res)
	hide := func(s string) string {
		if m.Handle != "" {
			s = strings.ReplaceAll(s, m.Handle, "HANDLE")
		}
		return s
	}
	out := map[string]string{"message": hide(m.Text) + "\n"}
	for _, image := range m.Images {
		out["images"] += image.URL() + "\n"
	}
	for _, block := range m.People {
		out["people"] += string(block) + "\n"
	}
	for line := range strings.Lines(in["args"]) {
		tool := ReadMoreTool()
		args := strings.ReplaceAll(line, "HANDLE", m.Handle)
		page := shape.Message(dragoman.Call{Tool: &tool}, shape.Shelf.Read("ann", json.RawMessage(args)))
		out["pages"] += hide(page.Text) + "\n"
	}
	return out
}

func setOptions(t *testing.T, shape *Shape, options string) {
	for line := range strings.Lines(options) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch name {
		case "Profile":
			profile, err := ParseProfile(value)
			if err != nil {
				t.Fatal(err)
			}
			shape.Profile = profile
		case "Images":
			shape.Images = true
		case "Shelf":
			shape.Shelf = nil
		case "Limit", "Tokens", "Inline":
			var n int
			if err := json.Unmarshal([]byte(value), &n); err != nil {
				t.Fatal(err)
			}
			*map[string]*int{"Limit": &shape.Limit, "Tokens": &shape.Tokens, "Inline": &shape.Inline}[name] = n
		default:
			t.Fatalf("unknown option %q", line)
		}
	}
}

func expand(t *testing.T, text string) []byte {
	tmpl, err := template.New("").Funcs(template.FuncMap{
		"repeat": func(n int, s string) string { return strings.Repeat(s, n) },
	}).Parse(strings.TrimSuffix(text, "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := tmpl.Execute(&out, nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
