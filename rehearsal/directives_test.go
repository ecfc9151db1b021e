package rehearsal

import (
	"fmt"
	"strings"
	"testing"
)

// show writes a script on one line: text in quotes, calls, rounds between
// bars.
func show(script []round) string {
	var rounds []string
	for _, r := range script {
		var parts []string
		for _, s := range r.say {
			parts = append(parts, fmt.Sprintf("%q", s))
		}
		for _, c := range r.calls {
			parts = append(parts, c.tool+c.arguments)
		}
		rounds = append(rounds, strings.Join(parts, " "))
	}
	return strings.Join(rounds, " | ")
}

func TestParseDirectives(t *testing.T) {
	for _, tt := range []struct{ name, text, want, oneByOne string }{
		{"none", "Please call me.\nCALL\nTHEN what?\nsay hi", "", ""},
		{"text", "SAY  Hello there. ", `"Hello there."`, `"Hello there."`},
		{"empty text", "SAY", `""`, `""`},
		{"no arguments", "CALL now", "now{}", "now{}"},
		{"no space", `CALL add{"a": 1}`, `add{"a": 1}`, `add{"a": 1}`},
		{"no JSON", `CALL add {"a":`, `add{"a":`, `add{"a":`},
		{"other lines", "Dear model,\r\n  CALL add {}\r\nthank you", "add{}", "add{}"},
		{"side by side", "CALL a {}\nCALL b {}", "a{} b{}", "a{} | b{}"},
		{"in order", "CALL a {}\nTHEN\nCALL b {}", "a{} | b{}", "a{} | b{}"},
		{"text beside calls", "SAY one\nCALL a {}\nCALL b {}", `"one" a{} b{}`, `"one" a{} | b{}`},
		{"text after calls", "CALL a {}\nSAY done", `a{} | "done"`, `a{} | "done"`},
		{"text between calls", "CALL a {}\nSAY next\nCALL b {}", `a{} | "next" b{}`, `a{} | "next" b{}`},
		{"two lines of text", "SAY one\nSAY two\nCALL a {}", `"one" "two" a{}`, `"one" "two" a{}`},
		{"text does not end a turn early", "SAY one\nTHEN\nCALL a {}", `"one" a{}`, `"one" a{}`},
		{"empty rounds", "THEN\nTHEN\nCALL a {}\nTHEN\nTHEN\n", "a{}", "a{}"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			script := parseDirectives(tt.text)
			if got := show(script); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := show(oneByOne(script)); got != tt.oneByOne {
				t.Errorf("one by one: got  %s\nwant %s", got, tt.oneByOne)
			}
		})
	}
}

func TestFind(t *testing.T) {
	var tools []tool
	for _, name := range []string{"demo__get_weather", "home__get_weather", "get_weather_history", "Sum", "sum_all", "srv__Sum_All"} {
		tools = append(tools, tool{name: name})
	}
	for _, tt := range []struct{ name, want string }{
		{"demo__get_weather", "demo__get_weather"},
		{"history", "get_weather_history"},
		{"get_weather", "several tools: demo__get_weather, home__get_weather."},
		{"Sum", "Sum"},
		{"sum", "Sum"},
		{"Sum_All", "srv__Sum_All"},
		{"SRV__SUM", "srv__Sum_All"},
		{"weather", "several tools: demo__get_weather, home__get_weather, get_weather_history."},
		{"mail", "no tool. The request offers: demo__get_weather, "},
	} {
		found, got := find(tt.name, tools)
		if found != nil {
			got = found.name
		}
		if !strings.Contains(got, tt.want) || found != nil && got != tt.want {
			t.Errorf("find %s: got %s, want %s", tt.name, got, tt.want)
		}
	}
	if _, complaint := find("x", nil); !strings.Contains(complaint, "offers none") {
		t.Errorf("find without tools: %s", complaint)
	}
}

// FuzzParseDirectives checks that no call is lost, made up or moved past
// another, however the rounds fall.
func FuzzParseDirectives(f *testing.F) {
	f.Add("SAY a\nCALL b {}\nTHEN\nCALL c{\"x\":1}\nSAY d")
	f.Add("THEN\r\n CALL  x\t{}\nSAY")
	f.Fuzz(func(t *testing.T, text string) {
		var want []string
		for line := range strings.Lines(text) {
			if rest, found := strings.CutPrefix(strings.TrimSpace(line), "CALL "); found {
				want = append(want, strings.TrimSpace(rest))
			}
		}
		script := parseDirectives(text)
		for _, s := range [][]round{script, oneByOne(script)} {
			var got []directive
			for i, r := range s {
				if len(r.calls) == 0 && i != len(s)-1 {
					t.Fatalf("round %d of %s calls nothing and is not the last", i, show(s))
				}
				got = append(got, r.calls...)
			}
			if len(got) != len(want) {
				t.Fatalf("%d calls in %s, want %d", len(got), show(s), len(want))
			}
			for i, c := range got {
				if !strings.HasPrefix(want[i], c.tool) || c.arguments != "{}" && !strings.HasSuffix(want[i], c.arguments) {
					t.Fatalf("call %d is %+v, want %q", i, c, want[i])
				}
			}
		}
	})
}
