package console

import (
	"encoding/json"
	"slices"
	"testing"
)

// An image that is shown after a click is one that a browser can read.
func TestImages(t *testing.T) {
	for data, want := range map[string]string{
		"iVBORw0KGgo=":          "iVBORw0KGgo=",
		"iVBO\\nRw0K\\r\\nGgo=": "iVBORw0KGgo=",
		"iVBORw0KGgo":           "iVBORw0KGgo=",
		"-_-_":                  "+/+/",
		"%%% no base64":         "",
		"iVBORw0KGgoAA":         "",
		"":                      "",
	} {
		shown := images(json.RawMessage(`{"content":[{"type":"image","mimeType":"image/png","data":"` + data + `"}]}`))
		if got := append(slices.Clone(shown), image{})[0].Data; got != want {
			t.Errorf("%q is shown as %q, want %q", data, got, want)
		}
	}
	if shown := images(json.RawMessage(`{"content":[{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zy8+"}]}`)); shown != nil {
		t.Errorf("a picture that can hold a program is shown: %v", shown)
	}
}
