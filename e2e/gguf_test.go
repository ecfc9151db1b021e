package e2e

import (
	"bytes"
	le "encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A languageModel is what llama.cpp needs to run a model of the llama family: its
// shape, its words and its weights. What it knows does not matter here, the grammar
// decides what it can write.
type languageModel struct {
	width, hidden, layers, heads, keyHeads int

	words  []string
	scores []float32
	kinds  []int32
	tensor func(name string, n int) []float32
}

// Kinds of words, as the GGUF specification numbers them.
const (
	wordNormal  = 1
	wordUnknown = 2
	wordControl = 3
	wordByte    = 6
)

// chatForm is a template in the manner of Hermes: calls are JSON between marks. It
// names the tools without their schemas, which the grammar knows, so that prompts stay
// short.
const chatForm = `{%- if tools %}{{- '<|im_start|>system\nTools: ' }}{%- for tool in tools %}{{- tool.function.name + ' ' }}{%- endfor %}` +
	`{{- 'Call one as <tool_call>{"name": name, "arguments": object}</tool_call><|im_end|>\n' }}{%- endif %}` +
	`{%- for message in messages %}{%- if message.tool_calls %}{{- '<|im_start|>assistant\n' }}{%- for call in message.tool_calls %}` +
	`{{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' + (call.function.arguments | tojson) + '}\n</tool_call>' }}{%- endfor %}{{- '<|im_end|>\n' }}` +
	`{%- elif message.role == 'tool' %}{{- '<|im_start|>user\n<tool_response>\n' + message.content + '\n</tool_response><|im_end|>\n' }}` +
	`{%- else %}{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}{%- endif %}{%- endfor %}` +
	`{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}`

// modelFile writes a model for llama.cpp: that of the folder DRAGOMAN_ENGINE_WEIGHTS
// (stories260K.bin and tok512.bin, in the formats of llama2.c), else one of random
// numbers. Both have every byte among their words, so neither is short of a character.
func modelFile(t *testing.T) string {
	t.Helper()
	m, from := randomModel(), "random numbers; DRAGOMAN_ENGINE_WEIGHTS does not name a folder with stories260K.bin and tok512.bin"
	if dir := os.Getenv("DRAGOMAN_ENGINE_WEIGHTS"); dir != "" {
		m, from = storyModel(t, dir), dir
	}
	t.Logf("the weights are %s", from)
	file := filepath.Join(t.TempDir(), "model.gguf")
	if err := os.WriteFile(file, m.gguf(), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// gguf is the file, version 3 (github.com/ggml-org/ggml, docs/gguf.md).
func (m *languageModel) gguf() []byte {
	var head ggufWriter
	head.text("general.architecture", "llama")
	head.text("general.name", "judge")
	for name, n := range map[string]int{
		"context_length": 32768, "embedding_length": m.width, "block_count": m.layers, "feed_forward_length": m.hidden,
		"attention.head_count": m.heads, "attention.head_count_kv": m.keyHeads, "rope.dimension_count": m.width / m.heads, "vocab_size": len(m.words),
	} {
		head.number("llama."+name, uint32(n))
	}
	head.key("llama.attention.layer_norm_rms_epsilon", 6)
	head.put(float32(1e-5))
	head.text("tokenizer.ggml.model", "llama")
	head.text("tokenizer.chat_template", chatForm)
	head.list("tokenizer.ggml.tokens", 8, len(m.words))
	for _, w := range m.words {
		head.string(w)
	}
	head.list("tokenizer.ggml.scores", 6, len(m.scores))
	head.put(m.scores)
	head.list("tokenizer.ggml.token_type", 5, len(m.kinds))
	head.put(m.kinds)
	for id, name := range []string{"unknown", "bos", "eos"} {
		head.number("tokenizer.ggml."+name+"_token_id", uint32(id))
	}
	var places, data ggufWriter
	shapes := m.shapes()
	for _, s := range shapes {
		n := 1
		places.string(s.name)
		places.put(uint32(len(s.sizes)))
		for _, size := range s.sizes {
			n *= size
			places.put(uint64(size))
		}
		places.put(uint32(0)) // 32-bit floats
		places.put(uint64(data.Len()))
		data.put(m.tensor(s.name, n))
		data.align()
	}
	var file ggufWriter
	file.WriteString("GGUF")
	file.put(uint32(3))
	file.put(uint64(len(shapes)))
	file.put(uint64(head.keys))
	file.Write(head.Bytes())
	file.Write(places.Bytes())
	file.align()
	file.Write(data.Bytes())
	return file.Bytes()
}

// A tensorShape is a tensor's name and its sizes, the fastest first.
type tensorShape struct {
	name  string
	sizes []int
}

// shapes are the tensors of the llama architecture.
func (m *languageModel) shapes() []tensorShape {
	keys := m.width / m.heads * m.keyHeads
	all := []tensorShape{{"token_embd.weight", []int{m.width, len(m.words)}}, {"output_norm.weight", []int{m.width}}, {"output.weight", []int{m.width, len(m.words)}}}
	for i := range m.layers {
		for _, s := range []tensorShape{
			{"attn_norm", []int{m.width}}, {"attn_q", []int{m.width, m.width}}, {"attn_k", []int{m.width, keys}}, {"attn_v", []int{m.width, keys}},
			{"attn_output", []int{m.width, m.width}}, {"ffn_norm", []int{m.width}},
			{"ffn_gate", []int{m.width, m.hidden}}, {"ffn_down", []int{m.hidden, m.width}}, {"ffn_up", []int{m.width, m.hidden}},
		} {
			all = append(all, tensorShape{fmt.Sprintf("blk.%d.%s.weight", i, s.name), s.sizes})
		}
	}
	return all
}

// A ggufWriter writes what GGUF consists of, little endian.
type ggufWriter struct {
	bytes.Buffer
	keys int
}

func (w *ggufWriter) put(v any) {
	if err := le.Write(w, le.LittleEndian, v); err != nil {
		panic(err) // all types have a size
	}
}

func (w *ggufWriter) string(s string) {
	w.put(uint64(len(s)))
	w.WriteString(s)
}

// key begins a pair of metadata of a type.
func (w *ggufWriter) key(name string, kind uint32) {
	w.keys++
	w.string(name)
	w.put(kind)
}

func (w *ggufWriter) text(name, value string) {
	w.key(name, 8)
	w.string(value)
}

func (w *ggufWriter) number(name string, value uint32) {
	w.key(name, 4)
	w.put(value)
}

func (w *ggufWriter) list(name string, of uint32, n int) {
	w.key(name, 9)
	w.put(of)
	w.put(uint64(n))
}

func (w *ggufWriter) align() {
	for w.Len()%32 != 0 {
		w.WriteByte(0)
	}
}

// firstWords are the three that every vocabulary begins with, and each byte.
func (m *languageModel) firstWords() {
	m.add("<unk>", 0, wordUnknown)
	m.add("<s>", 0, wordControl)
	m.add("</s>", 0, wordControl)
	for b := range 256 {
		m.add(fmt.Sprintf("<0x%02X>", b), -1000, wordByte)
	}
}

func (m *languageModel) add(word string, score float32, kind int32) {
	m.words, m.scores, m.kinds = append(m.words, word), append(m.scores, score), append(m.kinds, kind)
}

// randomModel is a small one whose weights are random numbers, the same in each run.
func randomModel() *languageModel {
	m := &languageModel{width: 32, hidden: 64, layers: 1, heads: 2, keyHeads: 2}
	m.firstWords()
	for c := rune(' '); c < 0x7f; c++ {
		m.add(strings.ReplaceAll(string(c), " ", "▁"), -1, wordNormal)
	}
	for i, word := range []string{"é", "世", "😀", "▁a", "er", "on", "1.5", `":`, `",`, "\\n", "-1"} {
		m.add(word, float32(-2-i), wordNormal)
	}
	m.tensor = func(name string, n int) []float32 {
		r := rand.New(rand.NewPCG(uint64(len(name)), uint64(n)))
		values := make([]float32, n)
		for i := range values {
			if values[i] = float32(r.NormFloat64() * 0.2); strings.Contains(name, "norm") {
				values[i] = 1
			}
		}
		return values
	}
	return m
}

// storyModel reads a checkpoint and a vocabulary of llama2.c (run.c, read_checkpoint
// and build_tokenizer).
func storyModel(t *testing.T, dir string) *languageModel {
	t.Helper()
	weights, err := os.ReadFile(filepath.Join(dir, "stories260K.bin"))
	if err != nil {
		t.Fatal(err)
	}
	words, err := os.ReadFile(filepath.Join(dir, "tok512.bin"))
	if err != nil {
		t.Fatal(err)
	}
	number := func(i int) int { return int(int32(le.LittleEndian.Uint32(weights[4*i:]))) }
	m := &languageModel{width: number(0), hidden: number(1), layers: number(2), heads: number(3), keyHeads: number(4)}
	count, length := number(5), number(6)
	m.firstWords()
	for at, i := 4, 0; i < count; i++ {
		score := math.Float32frombits(le.LittleEndian.Uint32(words[at:]))
		n := int(le.LittleEndian.Uint32(words[at+4:]))
		if i >= len(m.words) { // those before are in each vocabulary
			m.add(strings.ReplaceAll(strings.ToValidUTF8(string(words[at+8:at+8+n]), "\ufffd"), " ", "▁"), score, wordNormal)
		}
		at += 8 + n
	}
	tensors, at := map[string][]float32{}, 28
	take := func(name string, n int) {
		values := make([]float32, n)
		for i := range values {
			values[i] = math.Float32frombits(le.LittleEndian.Uint32(weights[at:]))
			at += 4
		}
		tensors[name] = values
	}
	keys := m.width / m.heads * m.keyHeads
	take("token_embd.weight", count*m.width)
	for _, part := range []struct {
		name string
		n    int
	}{
		{"attn_norm", m.width}, {"attn_q", m.width * m.width}, {"attn_k", m.width * keys}, {"attn_v", m.width * keys}, {"attn_output", m.width * m.width},
		{"ffn_norm", m.width}, {"ffn_gate", m.width * m.hidden}, {"ffn_down", m.width * m.hidden}, {"ffn_up", m.width * m.hidden},
	} {
		for i := range m.layers {
			take(fmt.Sprintf("blk.%d.%s.weight", i, part.name), part.n)
		}
	}
	take("output_norm.weight", m.width)
	at += 4 * length * m.width / m.heads // the turns of positions, which llama.cpp computes
	if tensors["output.weight"] = tensors["token_embd.weight"]; at < len(weights) {
		take("output.weight", count*m.width)
	}
	m.tensor = func(name string, n int) []float32 {
		if len(tensors[name]) != n {
			t.Fatalf("the checkpoint has %d numbers for %s, want %d", len(tensors[name]), name, n)
		}
		return tensors[name]
	}
	return m
}
