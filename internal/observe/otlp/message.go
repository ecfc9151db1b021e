package otlp

import (
	"encoding/binary"
	"math"
	"strings"

	"go.opentelemetry.io/otel/attribute"
)

// A message is one of Protocol Buffers, as it is built: fields in the order in which they
// are appended (protobuf.dev, "Encoding").
type message []byte

// The types of the wire.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
	fixed32 = 5
)

func (m *message) tag(field, wire uint64) {
	*m = binary.AppendUvarint(*m, field<<3|wire)
}

func (m *message) number(field, n uint64) {
	if n != 0 {
		m.tag(field, varint)
		*m = binary.AppendUvarint(*m, n)
	}
}

func (m *message) flag(field uint64, set bool) {
	if set {
		m.number(field, 1)
	}
}

func (m *message) fixed(field, n uint64) {
	m.tag(field, fixed64)
	*m = binary.LittleEndian.AppendUint64(*m, n)
}

func (m *message) short(field uint64, n uint32) {
	m.tag(field, fixed32)
	*m = binary.LittleEndian.AppendUint32(*m, n)
}

func (m *message) double(field uint64, f float64) { m.fixed(field, math.Float64bits(f)) }

func (m *message) text(field uint64, s string) {
	if s != "" {
		m.said(field, s)
	}
}

// said appends a text, also an empty one. Of one that is no UTF-8 a collector would refuse the
// whole message.
func (m *message) said(field uint64, s string) {
	s = strings.ToValidUTF8(s, "\uFFFD")
	m.tag(field, bytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(s))), s...)
}

func (m *message) bytes(field uint64, b []byte) {
	m.tag(field, bytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

// packed appends numbers of 64 bits.
func (m *message) packed(field uint64, n int, each func(int) uint64) {
	if n == 0 {
		return
	}
	m.tag(field, bytes)
	*m = binary.AppendUvarint(*m, uint64(8*n))
	for i := range n {
		*m = binary.LittleEndian.AppendUint64(*m, each(i))
	}
}

// in appends a message within the message.
func (m *message) in(field uint64, fill func(*message)) {
	var inner message
	fill(&inner)
	m.bytes(field, inner)
}

// attributes appends pairs of keys and values.
func (m *message) attributes(field uint64, all []attribute.KeyValue) {
	for _, kv := range all {
		m.in(field, func(pair *message) {
			pair.text(1, string(kv.Key))
			pair.in(2, func(v *message) { v.value(kv.Value) })
		})
	}
}

// value fills an AnyValue, in which also what is empty is said.
func (m *message) value(v attribute.Value) {
	switch v.Type() {
	case attribute.BOOL:
		n := uint64(0)
		if v.AsBool() {
			n = 1
		}
		m.tag(2, varint)
		*m = binary.AppendUvarint(*m, n)
	case attribute.INT64:
		m.tag(3, varint)
		*m = binary.AppendUvarint(*m, uint64(v.AsInt64()))
	case attribute.FLOAT64:
		m.double(4, v.AsFloat64())
	case attribute.STRINGSLICE:
		m.in(5, func(list *message) {
			for _, s := range v.AsStringSlice() {
				list.in(1, func(each *message) { each.said(1, s) })
			}
		})
	default:
		m.said(1, v.String())
	}
}
