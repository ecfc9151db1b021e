package toolkit

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/text/pattern"
)

// rules are the keywords that struct tags add to a schema. Numbers are kept as
// they were written.
type rules struct {
	title, desc          string
	enum                 []json.RawMessage
	fallback             json.RawMessage // default
	examples             []json.RawMessage
	min, max             string
	above, below, factor string
	pattern, format      string
	unique               bool
	header               string
}

// misspelt are tags that somebody means well with and that say nothing here.
var misspelt = map[string]string{
	"description": "desc", "minimum": "min", "maximum": "max", "minLength": "min", "maxLength": "max",
	"jsonschema": "desc, enum, default, min, max, pattern, format", "validate": "min, max, enum, pattern",
}

// read takes the rules from a field's tags; of is what the field holds.
func (r *rules) read(tag reflect.StructTag, of *shape) error {
	for wrong, right := range misspelt {
		if _, ok := tag.Lookup(wrong); ok {
			return fmt.Errorf("tag %q says nothing here; use %s", wrong, right)
		}
	}
	r.title, r.desc = tag.Get("title"), tag.Get("desc")
	r.min, r.max = tag.Get("min"), tag.Get("max")
	r.above, r.below, r.factor = tag.Get("above"), tag.Get("below"), tag.Get("multiple")
	r.pattern, r.format = tag.Get("pattern"), tag.Get("format")
	r.unique = tag.Get("unique") == "true"
	r.header = tag.Get("header")

	var problems []error
	fail := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	for name, number := range map[string]string{"min": r.min, "max": r.max, "above": r.above, "below": r.below, "multiple": r.factor} {
		if number == "" {
			continue
		}
		n, err := strconv.ParseFloat(number, 64)
		if err != nil || !json.Valid([]byte(number)) {
			fail("%s: %q is not a number", name, number)
		}
		if (of.kind == kindText || of.kind == kindList || of.kind == kindDict) && (n < 0 || n != float64(int64(n))) {
			fail("%s: %q is not a length", name, number)
		}
	}
	if low, err := strconv.ParseFloat(r.min, 64); err == nil {
		if high, err := strconv.ParseFloat(r.max, 64); err == nil && low > high {
			fail("min %s is more than max %s", r.min, r.max)
		}
	}
	if _, err := regexp.Compile(r.pattern); err != nil {
		fail("pattern: %v", err)
	} else if err := pattern.Portable(r.pattern); err != nil {
		fail("pattern: clients cannot read it: %v", err)
	}
	r.fits(of, fail)
	leaf := of.leaf()
	if text, ok := tag.Lookup("enum"); ok && leaf.kind == kindCustom {
		fail("enum says nothing here; the JSONSchema method of %s does", leaf.goType)
	} else if ok {
		for part := range strings.SplitSeq(text, ",") {
			value, err := literal(leaf, strings.TrimSpace(part))
			if err != nil {
				fail("enum: %v", err)
				continue
			}
			r.enum = append(r.enum, value)
		}
	}
	if text, ok := tag.Lookup("default"); ok {
		value, err := literal(of, text)
		if err != nil {
			fail("default: %v", err)
		}
		r.fallback = value
	}
	if text, ok := tag.Lookup("example"); ok {
		value, err := literal(of, text)
		if err != nil {
			fail("example: %v", err)
		} else {
			r.examples = append(r.examples, value)
		}
	}
	return errors.Join(problems...)
}

// leaf is what enum, pattern and format are about: of a list, its items. Inside
// a list that contains itself the items are not known yet.
func (s *shape) leaf() *shape {
	if s.kind == kindList && s.item != nil {
		return s.item.of
	}
	return s
}

// fits refuses tags that mean nothing for what the field holds.
func (r *rules) fits(of *shape, fail func(string, ...any)) {
	numeric := of.kind == kindInteger || of.kind == kindNumber
	sized := of.kind == kindText || of.kind == kindList || of.kind == kindDict
	texts := of.kind == kindText || of.kind == kindList && of.leaf().kind == kindText
	if (r.min != "" || r.max != "") && !numeric && !sized {
		fail("min and max mean nothing for %s", of.goType)
	}
	if (r.above != "" || r.below != "" || r.factor != "") && !numeric {
		fail("above, below and multiple are for numbers, not for %s", of.goType)
	}
	if (r.pattern != "" || r.format != "") && !texts {
		fail("pattern and format are for strings, not for %s", of.goType)
	}
	if r.unique && of.kind != kindList {
		fail("unique is for lists, not for %s", of.goType)
	}
}

// constrains reports whether the rules forbid anything that the Go type allows.
func (r *rules) constrains() bool {
	return len(r.enum) > 0 || r.min+r.max+r.above+r.below+r.factor+r.pattern+r.format != "" || r.unique
}

// literal reads a value written in a tag: JSON, or plain text for strings.
func literal(of *shape, text string) (json.RawMessage, error) {
	switch of.kind {
	case kindText, kindTime:
		return json.Marshal(text)
	case kindBoolean:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("%q is neither true nor false", text)
		}
	case kindInteger:
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			if _, err := strconv.ParseUint(text, 10, 64); err != nil {
				return nil, fmt.Errorf("%q is not an integer", text)
			}
		}
	case kindNumber:
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("%q is not a number", text)
		}
	case kindList:
		if !strings.HasPrefix(strings.TrimSpace(text), "[") {
			return nil, fmt.Errorf("%q is not a JSON array", text)
		}
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%q is not JSON", text)
	}
	return json.RawMessage(text), nil
}

// A role is what Markdown makes of a field.
type role int

const (
	rolePlain   role = iota
	roleName         // md:"name": the display name of the object
	roleID           // md:"id": printed after the display name
	roleTime         // md:"time": Unix seconds, printed as a time
	roleMillis       // md:"millis": Unix milliseconds, printed as a time
	roleOmitted      // md:"-": left out, because people do not need it
)

func readRole(tag reflect.StructTag) role {
	switch tag.Get("md") {
	case "name":
		return roleName
	case "id":
		return roleID
	case "time":
		return roleTime
	case "millis":
		return roleMillis
	case "-":
		return roleOmitted
	}
	return rolePlain
}
