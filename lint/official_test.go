package lint

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// A changedWriter answers with a status, and headers, that something changes.
type changedWriter struct {
	http.ResponseWriter
	status int
	change func(*changedWriter)
	told   bool
}

func (w *changedWriter) WriteHeader(status int) {
	if !w.told {
		w.told, w.status = true, status
		w.change(w)
		w.ResponseWriter.WriteHeader(w.status)
	}
}

func (w *changedWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.ResponseWriter.Write(b)
}

// changing changes the answers to calls of tools over HTTP.
func changing(change func(*changedWriter)) func(*model) {
	return func(m *model) {
		m.handler = func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			body, _ := io.ReadAll(r.Body)
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			if strings.Contains(string(body), `"tools/call"`) {
				w = &changedWriter{ResponseWriter: w, change: change}
			}
			next.ServeHTTP(w, r)
		}
	}
}

// TestBlocks: O018 refuses the blocks that the official clients refuse, and no others.
func TestBlocks(t *testing.T) {
	for block, want := range map[string]string{
		`{"type":"text","text":""}`:                                       "",
		`{"type":"image","data":"iVBO Rw0K","mimeType":"image/png"}`:      "", // white space is skipped
		`{"type":"audio","data":"","mimeType":"audio/wav"}`:               "",
		`{"type":"resource","resource":{"uri":"a:b","text":"x"}}`:         "",
		`{"type":"resource","resource":{"uri":"a:b","blob":"eA"}}`:        "",
		`{"type":"resource_link","uri":"a:b","name":"b","_meta":{"x":1}}`: "",
		`{"text":"x"}`:              "has no type",
		`"x"`:                       "has no type",
		`{"type":"text"}`:           "has no text",
		`{"type":"json","json":{}}`: `the unknown type "json"`,
		`{"type":"image","mimeType":"image/png"}`:                                     "has no data",
		`{"type":"image","data":"eA=="}`:                                              "has no mimeType",
		`{"type":"image","data":"e!","mimeType":"image/png"}`:                         "are not base64",
		`{"type":"image","data":"data:image/png;base64,eA==","mimeType":"image/png"}`: "are not base64",
		`{"type":"resource","resource":{"uri":"a:b"}}`:                                "without text or blob",
		`{"type":"resource","resource":{"text":"x"}}`:                                 "without a URI",
		`{"type":"resource","resource":{"uri":"a:b","blob":"%"}}`:                     "not base64",
		`{"type":"resource_link","uri":"a:b"}`:                                        "without URI or name",
	} {
		if got := blockFault(json.RawMessage(block)); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", block, got, want)
		}
	}
}

// TestPictures: O019 goes by bytes that are certain.
func TestPictures(t *testing.T) {
	const png, jpeg = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", "/9j/4AAQSkZJRgABAQAAAQABAAD/2Q=="
	for result, want := range map[string]bool{
		`{"content":[{"type":"image","mimeType":"image/png","data":"` + png + `"}]}`:                             false,
		`{"content":[{"type":"image","mimeType":"IMAGE/JPG","data":"` + jpeg + `"}]}`:                            false,
		`{"content":[{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zz4="}]}`:                            false,
		`{"content":[{"type":"image","mimeType":"image/png","data":"` + jpeg + `"}]}`:                            true,
		`{"content":[{"type":"resource","resource":{"uri":"a:b","mimeType":"image/gif","blob":"` + png + `"}}]}`: true,
		`{"contents":[{"uri":"a:b","mimeType":"image/jpeg","blob":"` + png + `"}]}`:                              true,
		`{"contents":[{"uri":"a:b","mimeType":"image/jpeg","text":"x"}]}`:                                        true,
	} {
		if got := wrongPicture(json.RawMessage(result)); (got != "") != want {
			t.Errorf("%s: %q, want %v", result, got, want)
		}
	}
}

// TestUnknownResultType: it is said once, with where it came.
func TestUnknownResultType(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newModel(t, modern)
		m.sent = func(line string) string { return strings.Replace(line, `"complete"`, `"finished"`, 1) }
		r, err := Run(t.Context(), []Target{m.overPipe()}, Options{Rules: modernRules})
		must(t, err)
		n := 0
		for _, f := range r.Findings {
			if f.Rule == "P003" {
				n++
				if !strings.Contains(f.Message, `tools/list ("finished")`) {
					t.Error(f.Message)
				}
			}
		}
		if n != 1 {
			t.Errorf("P003 was said %d times: %+v", n, r.Findings)
		}
	})
}
