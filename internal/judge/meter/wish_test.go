package meter

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"
)

// TestWishInParts: however a body is cut, the wish for usage is added where it would be were
// it whole, and the rest stays as it is.
func TestWishInParts(t *testing.T) {
	meaning := func(body [][]byte) (v any) {
		t.Helper()
		if err := json.Unmarshal(bytes.Join(body, nil), &v); err != nil {
			t.Fatalf("%s: %v", bytes.Join(body, nil), err)
		}
		return v
	}
	short := 0
	for _, text := range []string{
		`{"model":"m","messages":[{"content":"a \"stream\":true, b"}],"tools":[{"name":"x"}],"stream":true}`,
		`{"stream":true,"messages":[{"a":1},{"b":[2,","]}],"tools":[]}`,
		`{"messages":["x,"],"stream":true,"stream_options":{"x":1}}`,
		`{"messages":["x,",""],"stream_options":null,"stream":true,"n":1}`,
		`{"messages":[],"stream_options":{"include_usage":true},"stream":true}`,
		`{"prompt":"x","tools":[{"stream":true}],"stream":false}`,
		`{"input":[{"stream":true,"messages":[1]}],"a":1}`,
		`{"messages":[1],"str\u0065am":true,"b":{"c":"}"}}`,
	} {
		whole := [][]byte{[]byte(text)}
		asking, want := asksUsage(whole)
		for i := 1; i < len(text); i++ {
			for j := i; j <= len(text); j++ {
				parts := [][]byte{[]byte(text[:i]), []byte(text[i:j]), []byte(text[j:])}
				if split := bytes.Contains([]byte(text[i:j]), []byte("stream")) != maySay([]byte(text[i:j])); split {
					continue // a part ends or begins in a name
				}
				got, ok := asksUsage(parts)
				if _, _, fast := addsWish(parts); fast {
					short++
				}
				if ok != want && (ok || maySay(parts[0]) || maySay(parts[1]) || maySay(parts[2])) {
					t.Errorf("%q: asks %t, want %t", parts, ok, want)
				}
				if ok && !reflect.DeepEqual(meaning(got), meaning(asking)) {
					t.Errorf("%q became %q, want %q", parts, got, asking)
				}
				if !bytes.Equal(bytes.Join(parts, nil), []byte(text)) {
					t.Fatalf("%q was changed", text)
				}
			}
		}
	}
	if short == 0 {
		t.Error("all bodies were taken apart")
	}
	for end, want := range map[string]string{
		`,"stream":true}`:  `,"stream":true,"stream_options":{"include_usage":true}}`,
		`,"stream":false}`: "",
		`,"stream":true,"stream_options":{"include_usage":true}}`: "",
	} {
		usual := []string{`{"model":"m","messages":`, `[`, `{"content":"Hi"}`, `]`, `,"tools":`, `[{"type":"function"}]`, end}
		var body [][]byte
		for _, part := range usual {
			body = append(body, []byte(part))
		}
		got, ok, sure := addsWish(body)
		if !sure || ok != (want != "") || ok && string(got[len(got)-1]) != want || !ok && string(got[len(got)-1]) != end {
			t.Errorf("a dialogue's body that ends with %s: %q, %t, %t", end, got, ok, sure)
		}
	}
}
