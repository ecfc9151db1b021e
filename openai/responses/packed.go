package responses

import (
	"bytes"
	"encoding/binary"
	"encoding/json"

	"github.com/dragoman-mcp/dragoman/openai/memory"
)

// A packed response is one in a single piece of memory, which holds nothing else: of tens of
// thousands, each with its items, a collection of garbage would have to look at every part.
// Items are parts of a request's body before, and would hold that.
type packed struct {
	bytes []byte
	turns map[string]*memory.Turn
}

// pack returns a response packed: its texts, the response itself, and its items, each with its
// length before it. An item of the output that stands in the response is where it stands.
func pack(s *Stored) packed {
	size := (16 + len(s.Input) + 2*len(s.Output)) * 3 // lengths of up to 2 MiB
	for _, text := range s.texts() {
		size += len(*text)
	}
	size += len(s.Response)
	for _, item := range s.Input {
		size += len(item)
	}
	places := make([]int, len(s.Output)) // from 1; 0 for one that does not stand in the response
	for i, item := range s.Output {
		if places[i] = bytes.Index(s.Response, item) + 1; places[i] == 0 {
			size += len(item)
		}
	}
	b := make([]byte, 0, size)
	put := func(part []byte) { b = append(binary.AppendUvarint(b, uint64(len(part))), part...) }
	for _, text := range s.texts() {
		b = append(binary.AppendUvarint(b, uint64(len(*text))), *text...)
	}
	put(s.Response)
	b = binary.AppendUvarint(b, uint64(len(s.Input)))
	for _, item := range s.Input {
		put(item)
	}
	b = binary.AppendUvarint(b, uint64(len(s.Output)))
	for i, item := range s.Output {
		if b = binary.AppendUvarint(b, uint64(places[i])); places[i] == 0 {
			put(item)
		} else {
			b = binary.AppendUvarint(b, uint64(len(item)))
		}
	}
	return packed{b, s.Turns}
}

// unpack returns the response.
func (p packed) unpack() *Stored {
	s, b := &Stored{Turns: p.turns}, p.bytes
	number := func() int {
		n, size := binary.Uvarint(b)
		b = b[size:]
		return int(n)
	}
	part := func() []byte {
		n := number()
		part := b[:n:n]
		b = b[n:]
		return part
	}
	for _, text := range s.texts() {
		*text = string(part())
	}
	s.Response = part()
	s.Input = make([]json.RawMessage, number())
	for i := range s.Input {
		s.Input[i] = part()
	}
	s.Output = make([]json.RawMessage, number())
	for i := range s.Output {
		if at := number(); at == 0 {
			s.Output[i] = part()
		} else {
			end := at - 1 + number()
			s.Output[i] = s.Response[at-1 : end : end]
		}
	}
	return s
}

// texts are the texts of a response.
func (s *Stored) texts() [6]*string {
	return [...]*string{&s.ID, &s.Previous, &s.Conversation, &s.Person, &s.Session, &s.Upstream}
}

// size is about how many bytes of memory it holds.
func (p packed) size() int64 {
	n := int64(cap(p.bytes))
	for key, turn := range p.turns {
		n += int64(len(key)) + turn.Size()
	}
	return n
}
