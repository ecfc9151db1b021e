package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

const canary = `can"ary <7> +/ä`

// holder has a secret where methods are asked, where they are not, and below both.
type holder struct {
	Shown  Text            `json:"shown" yaml:"shown"`
	Map    map[string]Text `json:"map" yaml:"map"`
	List   []Text          `json:"list" yaml:"list"`
	Any    any             `json:"any" yaml:"any"`
	hidden Text
	deep   *[]Text
}

func TestNothingShowsIt(t *testing.T) {
	text := New(canary)
	h := holder{text, map[string]Text{"a": text}, []Text{text}, text, text, &[]Text{text}}
	var out strings.Builder
	for _, verb := range "vsqxXdtTpbcoUeEfFgG" {
		for _, flags := range []string{"%", "%+", "%#", "% ", "%-30.20"} {
			fmt.Fprintf(&out, flags+string(verb)+"\n", text)
			fmt.Fprintf(&out, flags+string(verb)+"\n", &text)
			fmt.Fprintf(&out, flags+string(verb)+"\n", h)
			fmt.Fprintf(&out, flags+string(verb)+"\n", &h)
		}
	}
	fmt.Fprintln(&out, text, h, fmt.Errorf("wrong: %w", errors.New(fmt.Sprint(text))))
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal, xml.Marshal} {
		for _, v := range []any{text, &text, h, map[Text]Text{text: text}} {
			data, err := encode(v)
			if err != nil && !strings.Contains(err.Error(), "unsupported type") {
				t.Error(err)
			}
			out.Write(data)
		}
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("log", "text", text, "pointer", &text, "holder", h, "any", slog.AnyValue(text))
	}
	for _, form := range append(spellings(canary), "can", fmt.Sprintf("%x", canary[:4]), fmt.Sprintf("%X", canary[:4]), fmt.Sprintf("% x", canary[:4])) {
		if i := strings.Index(out.String(), form); i >= 0 {
			t.Errorf("%q is shown: …%s", form, out.String()[max(0, i-100):i+20])
		}
	}
	if got := fmt.Sprintf("%v %q %#v", text, text, []Text{text}); !strings.HasPrefix(got, "*** *** ") {
		t.Errorf("got %s", got)
	}
}

func TestText(t *testing.T) {
	one, same, other, none := New(canary), New(strings.Clone(canary)), New("other"), New("")
	if one != same || one == other || one == none || !one.Equal(same) || one.Equal(other) || one.Equal(none) || !none.Equal(Text{}) {
		t.Error("equality")
	}
	if one.Reveal() != canary || none.Reveal() != "" || !none.IsZero() || one.IsZero() {
		t.Error("opening")
	}
	if data, err := json.Marshal(map[string]Text{"a": none, "b": one}); string(data) != `{"a":"","b":"***"}` {
		t.Errorf("got %s, %v", data, err)
	}
	if fmt.Sprintf("%s%v%#v", none, none, none) != "" {
		t.Error("what is none shows")
	}
	want := map[string]Text{"a": one}
	if got := Map(map[string]string{"a": canary}); !reflect.DeepEqual(got, want) || Map(nil) != nil {
		t.Error("map")
	}
}

func TestHandler(t *testing.T) {
	var out strings.Builder
	plain := slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}})
	log := slog.New(NewMask(New("abcdefgh")).Handler(plain)).With("with", "abcdefgh").WithGroup("g")
	log.Info("said abcdefgh", "text", "is abcdefgh", "error", errors.New("bad abcdefgh"), slog.Group("h", "any", []string{"abcdefgh"}), "n", 7, "free", errors.New("free"))
	log.Debug("abcdefgh")
	if want := "level=INFO msg=\"said ***\" with=*** g.text=\"is ***\" g.error=\"bad ***\" g.h.any=[***] g.n=7 g.free=free\n"; out.String() != want {
		t.Errorf("got  %swant %s", out.String(), want)
	}
	if (Mask{}).Handler(plain) != slog.Handler(plain) {
		t.Error("what hides nothing is in the way")
	}
}

func TestMask(t *testing.T) {
	secrets := []string{canary, "sk-0123456789", "sk-0123456789-longer", "user:pass word", "short"}
	var texts []Text
	for _, s := range secrets {
		texts = append(texts, New(s))
	}
	mask := NewMask(texts...)
	for _, s := range secrets[:4] {
		var plain bytes.Buffer
		encoder := json.NewEncoder(&plain)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(s); err != nil {
			t.Fatal(err)
		}
		escaped, _ := json.Marshal(s)
		for _, text := range []string{
			s, fmt.Sprintf("%q", s), string(escaped), plain.String(), url.QueryEscape(s), url.PathEscape(s),
			(&url.URL{Scheme: "https", User: url.UserPassword("me", s), Host: "a.test"}).String(),
			base64.StdEncoding.EncodeToString([]byte(s)), base64.URLEncoding.EncodeToString([]byte(s)),
		} {
			got := mask.Hide("before " + text + " after")
			if !strings.HasPrefix(got, "before ") || !strings.HasSuffix(got, " after") || !strings.Contains(got, Hidden) || len(got) > len("before https://me:***@a.test after") {
				t.Errorf("%s: got %s", text, got)
			}
		}
	}
	if got := mask.Hide("short words stay"); got != "short words stay" {
		t.Errorf("got %s", got)
	}
	if got := (Mask{}).Hide(canary); got != canary {
		t.Errorf("got %s", got)
	}
}
