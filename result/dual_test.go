package result

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-mcp/dragoman"
	"github.com/google/go-cmp/cmp"
)

func TestDual(t *testing.T) {
	for _, tt := range []struct {
		name, in, modern, legacy string
	}{{
		name:   "text is added at the end, all else stays",
		in:     `{"_meta":{"a":1.0},"content":[ {"type":"image","data":"","mimeType":"image/png"} ], "structuredContent":{"b":9007199254740993,"a":"<é>"},"x":null}`,
		modern: `{"_meta":{"a":1.0},"content":[ {"type":"image","data":"","mimeType":"image/png"} ,{"type":"text","text":"{\"b\":9007199254740993,\"a\":\"<é>\"}"}],"structuredContent":{"b":9007199254740993,"a":"<é>"},"x":null}`,
	}, {
		name: "a block says the same in another spelling",
		in:   `{"content":[{"type":"text","text":"Two members."},{"type":"text","text":"{ \"a\": 1.0,\n \"b\": \"\\u00e9\" }"}],"structuredContent":{"b":"é","a":1}}`,
	}, {
		name:   "a summary does not say the same",
		in:     `{"content":[{"type":"text","text":"one member"}],"structuredContent":{"a":1}}`,
		modern: `{"content":[{"type":"text","text":"one member"},{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`,
	}, {
		name:   "no content at all",
		in:     `{"structuredContent":{"a":1}}`,
		modern: `{"structuredContent":{"a":1},"content":[{"type":"text","text":"{\"a\":1}"}]}`,
	}, {
		name:   "null counts as present",
		in:     `{"content":[],"structuredContent":null}`,
		modern: `{"content":[{"type":"text","text":"null"}],"structuredContent":null}`,
		legacy: `{"content":[{"type":"text","text":"{\"result\":null}"}],"structuredContent":{"result":null}}`,
	}, {
		name:   "a list with its text",
		in:     `{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]}`,
		modern: `{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":[1,2]}`,
		legacy: `{"content":[{"type":"text","text":"[1,2]"}],"structuredContent":{"result":[1,2]}}`,
	}, {
		name: "an error gets nothing",
		in:   `{"content":[{"type":"text","text":"no"}],"structuredContent":[0],"isError":true}`,
	}, {
		name: "text alone stays text",
		in:   `{"content":[{"type":"text","text":"{\"a\":1}"}]}`,
	}, {
		name: "what is no object is left to others",
		in:   `[1]`,
	}} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.modern == "" {
				tt.modern = tt.in
			}
			if tt.legacy == "" {
				tt.legacy = tt.modern
			}
			in := dragoman.Result{Content: json.RawMessage(tt.in)}
			if diff := cmp.Diff(tt.modern, string(Dual(in, false).Content)); diff != "" {
				t.Errorf("modern, -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(tt.legacy, string(Dual(in, true).Content)); diff != "" {
				t.Errorf("legacy, -want +got:\n%s", diff)
			}
		})
	}
}

func TestDualMakesAnErrorOfAProblem(t *testing.T) {
	got := Dual(dragoman.Failure(dragoman.CodeDenied, "A rule forbids it."), false)
	want := dragoman.Result{
		Content: json.RawMessage(`{"content":[{"type":"text","text":"{\"error\":\"denied\",\"message\":\"A rule forbids it.\"}"}],"isError":true}`),
		Failed:  true,
		Ran:     dragoman.RanNot,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAddGuide(t *testing.T) {
	once := AddGuide("Be brief.\n", Guide)
	if once != "Be brief.\n\n"+Guide {
		t.Errorf("the guide went elsewhere: %q", once)
	}
	for _, system := range []string{once, "x [Reading tool results, guide 0] y"} {
		if got := AddGuide(system, Guide); got != system {
			t.Errorf("a second guide was added: %q", got)
		}
	}
	if got := AddGuide("", "Own text."); got != "Own text." {
		t.Errorf("an empty system text became %q", got)
	}
	if got := AddGuide("Be brief.", ""); got != "Be brief." {
		t.Errorf("turned off it became %q", got)
	}
}
