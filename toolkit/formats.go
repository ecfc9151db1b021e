package toolkit

import (
	"encoding"
	"encoding/json"
	"fmt"
	"net/mail"
	"net/netip"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"time"

	"github.com/dragoman-mcp/dragoman/schema"
)

// finer finds what a validator does not: texts that are not of their format,
// which it takes for mere notes, and values that the Go type cannot hold.
func (s *shape) finer(n *schema.Node, at string, complain func(at, expected string)) {
	switch s.kind {
	case kindObject:
		for _, f := range s.fields {
			if m := n.Get(f.name); m != nil {
				f.at.finer(m, join(at, f.name), complain)
			}
		}
	case kindList, kindDict:
		for i, item := range n.Items() {
			s.item.finer(item, join(at, strconv.Itoa(i)), complain)
		}
		for _, m := range n.Members() {
			s.item.finer(m.Value, join(at, m.Name), complain)
		}
	}
}

func (p *place) finer(n *schema.Node, at string, complain func(at, expected string)) {
	if expected := p.of.unfit(n, p.rules.format); expected != "" {
		complain(at, expected)
	}
	for i, item := range n.Items() { // a format beside a list is that of its items
		if p.of.kind != kindList || p.rules.format == "" {
			break
		}
		if expected := p.of.item.of.unfit(item, p.rules.format); expected != "" {
			complain(join(at, strconv.Itoa(i)), expected)
		}
	}
	p.of.finer(n, at, complain)
}

// unfit says what was expected instead of one value; empty if it fits, or if it
// is of another type altogether, which the validator tells.
func (s *shape) unfit(n *schema.Node, format string) string {
	switch s.kind {
	case kindTime:
		format = "date-time"
	case kindInteger:
		return s.unfitInteger(n)
	case kindNumber:
		if n.Kind() == schema.Number && !s.holds(n.Text()) {
			return fmt.Sprintf("a number that %s can hold", s.goType.Kind())
		}
	case kindText:
		if s.base64 && n.Kind() == schema.String && !s.holds(string(n.Bytes())) {
			return "bytes in base64"
		}
		if s.reads && n.Kind() == schema.String {
			if err := reflect.New(s.goType).Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Text())); err != nil {
				return fmt.Sprintf("%s: %v", typeName(s.goType), err)
			}
		}
	}
	if known, ok := formats[format]; ok && n.Kind() == schema.String && !known.valid(n.Text()) {
		return known.words
	}
	return ""
}

// unfitInteger finds integers that the Go type cannot hold. The schema says so
// itself for small types; for those of 64 bits it would only cost tokens.
func (s *shape) unfitInteger(n *schema.Node) string {
	plain, _ := n.Integer() // empty for what is far beyond any type, too
	if n.Kind() == schema.Number && !s.holds(plain) {
		return fmt.Sprintf("an integer that %s can hold", s.goType.Kind())
	}
	return ""
}

// holds reports whether the Go type can hold a value, written as JSON. What has no type
// holds all.
func (s *shape) holds(value string) bool {
	return s.goType == nil || json.Unmarshal([]byte(value), reflect.New(s.goType).Interface()) == nil
}

var uuid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// formats are those of JSON Schema that are enforced; others are notes.
var formats = map[string]struct {
	words string
	valid func(string) bool
}{
	"date-time": {"a date and time such as 2024-01-15T10:30:00Z", func(t string) bool { _, err := time.Parse(time.RFC3339, t); return err == nil }},
	"date":      {"a date such as 2024-01-15", func(t string) bool { _, err := time.Parse(time.DateOnly, t); return err == nil }},
	"email":     {"an email address", func(t string) bool { a, err := mail.ParseAddress(t); return err == nil && a.Address == t }},
	"uri":       {"an absolute URI", func(t string) bool { u, err := url.Parse(t); return err == nil && u.IsAbs() }},
	"uuid":      {"a UUID", uuid.MatchString},
	"ipv4":      {"an IPv4 address", func(t string) bool { a, err := netip.ParseAddr(t); return err == nil && a.Is4() }},
	"ipv6":      {"an IPv6 address", func(t string) bool { a, err := netip.ParseAddr(t); return err == nil && a.Is6() }},
}
