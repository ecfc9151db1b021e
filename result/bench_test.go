package result

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

// structuredResult is a result of about size bytes, as a database tool gives it.
func structuredResult(size int) []byte {
	var b strings.Builder
	b.WriteString(`{"content":[],"structuredContent":{"items":[`)
	for i := 0; b.Len() < size-160; i++ {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `{"id":%d,"name":"Entity number %d","city":"北京","tags":["a","b"],"score":%d.25,"active":true,"note":"said \"hello\" to the others"}`, 1_000_000+i, i, i%100)
	}
	b.WriteString(`],"total":1},"isError":false}`)
	return []byte(b.String())
}

func textResult(size int) []byte {
	line := `2026-11-21 10:30:00 UTC  worker-7  finished job \"nightly\" in 312 ms\n`
	return []byte(`{"content":[{"type":"text","text":"` + strings.Repeat(line, size/len(line)) + `"}]}`)
}

// jsonTextResult has its JSON in a text block, as servers without
// structuredContent send it.
func jsonTextResult(size int) []byte {
	text := structuredResult(size * 9 / 10)
	return append(appendQuoted([]byte(`{"content":[{"type":"text","text":`), string(text)), `}]}`...)
}

// dualResult has its JSON twice.
func dualResult(size int) []byte {
	text := structuredResult(size / 2)
	b := appendQuoted([]byte(`{"content":[{"type":"text","text":`), string(text))
	return append(append(append(b, `}],"structuredContent":`...), text...), '}')
}

var benchInputs = []struct {
	name string
	make func(int) []byte
}{
	{"structured", structuredResult},
	{"text", textResult},
	{"jsontext", jsonTextResult},
	{"dual", dualResult},
}

// BenchmarkMessage shapes results (shape) beside the least that a program does
// that decodes results (json), which sees the text of jsontext as a string only.
func BenchmarkMessage(b *testing.B) {
	whole := &Shape{Limit: 200_000, Shelf: &Shelf{}}
	cutting := &Shape{Shelf: &Shelf{}}
	for _, in := range benchInputs {
		for _, size := range []int{1 << 10, 100 << 10, 5 << 20} {
			content := in.make(size)
			name := fmt.Sprintf("%s/%dK", in.name, size>>10)
			s := whole
			if size > 1<<20 {
				s = cutting
			}
			b.Run(name+"/shape", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					m := s.Message(call, dragoman.Result{Content: content})
					if m.Cut != (size > 1<<20) {
						b.Fatal("cut or not cut as not meant")
					}
				}
			})
			b.Run(name+"/json", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					var v any
					if err := json.Unmarshal(content, &v); err != nil {
						b.Fatal(err)
					}
					if _, err := json.Marshal(v); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
