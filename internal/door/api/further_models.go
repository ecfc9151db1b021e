package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/dragoman-mcp/dragoman/internal/identity/caller"
	"github.com/dragoman-mcp/dragoman/internal/judge/policy"
	"github.com/dragoman-mcp/dragoman/internal/text/clip"
	"github.com/dragoman-mcp/dragoman/internal/wire/rawjson"
	"github.com/dragoman-mcp/dragoman/openai/model"
)

// judgeFurther refuses a body that names a further model, at any depth, that the caller may
// not use: APIs take them for when the first one fails ("models", "fallbacks"), for tools
// ("tools": [{"model": …}]), sessions, transcriptions and graders. The body passed
// [rawjson.Check].
func (a *API) judgeFurther(ctx context.Context, who caller.Caller, body []byte) error {
	if !a.Sessions.Gate().LimitsModels(who) {
		return nil
	}
	f := furtherModels{in: jsontext.NewDecoder(bytes.NewReader(body)), found: func(name string) error {
		if a.Sessions.Gate().Sees(who, policy.Model, name) {
			return nil
		}
		leave, err := a.admit(ctx, who, policy.Model, name) // says so, and writes it down
		if err == nil {
			leave()
		}
		return err
	}}
	return f.value("", "")
}

// furtherModels looks for names of models in a document.
type furtherModels struct {
	in    *jsontext.Decoder
	found func(name string) error
}

// plain are members, by their places without those of arrays, in which "model" is no model
// of the API's: what people and servers say, and schemas.
var plain = map[string]bool{
	"/messages": true, "/input": true, "/documents": true, "/metadata": true, "/prompt/variables": true, "/prediction": true,
	"/tools/function/parameters": true, "/tools/parameters": true, "/tools/input_schema": true, "/tools/input_examples": true, "/functions/parameters": true,
	"/response_format/json_schema/schema": true, "/response_format/schema": true, "/text/format/schema": true, "/output_format/schema": true, "/output_config/format/schema": true,
	"/guided_json": true, "/structured_outputs/json": true, "/format": true,
}

// maxPlain is longer than each place of a plain member.
const maxPlain = 48

// value reads the next value, at a place; member is the one that it is of, or in a list of,
// where that names models.
func (f *furtherModels) value(place, member string) error {
	switch kind := f.in.PeekKind(); {
	case kind == '{' && !fallback(member):
		return f.object(place)
	case kind == '[':
		if _, err := f.in.ReadToken(); err != nil {
			return err
		}
		for f.in.PeekKind() != ']' {
			if err := f.value(place, member); err != nil {
				return err
			}
		}
		_, err := f.in.ReadToken()
		return err
	case kind == '"' && member != "", fallback(member) && kind != 'n':
		value, err := f.in.ReadValue()
		if err != nil {
			return err
		}
		name, ok := rawjson.String([]byte(value))
		if !ok {
			name = clip.Text(string(value), 80)
		}
		return f.found(name)
	}
	return f.in.SkipValue()
}

func (f *furtherModels) object(place string) error {
	if _, err := f.in.ReadToken(); err != nil {
		return err
	}
	for f.in.PeekKind() != '}' {
		token, err := f.in.ReadToken()
		if err != nil {
			return err
		}
		name, at := token.String(), strings.Repeat("-", maxPlain) // deeper than any
		if len(place)+len(name) < maxPlain {
			at = place + "/" + name
		}
		if plain[at] {
			err = f.in.SkipValue()
		} else {
			member := ""
			if namesModels(name) {
				member = name
			}
			err = f.value(at, member)
		}
		if err != nil {
			return err
		}
	}
	_, err := f.in.ReadToken()
	return err
}

// fallback reports whether a member takes models for when the first one fails: whatever
// stands there is judged as the name of one.
func fallback(member string) bool {
	return strings.EqualFold(member, "models") || strings.EqualFold(member, "fallbacks")
}

// furtherField reports whether a field of a form may name further models for some API. What
// of its value is their name is not known: it may be a list, or JSON.
func furtherField(name string) bool {
	outer, _, _ := strings.Cut(name, "[") // as in fallbacks[0]
	return namesModels(name) || namesModels(outer)
}

func furtherNamed(name string) error {
	return &model.Error{
		Status: http.StatusForbidden, Type: model.TypePermission, Code: codeModelNotKnown, Param: clip.Text(name, 40),
		Message: fmt.Sprintf("This key may use some models only, and %.40q can name others: leave it out.", name),
	}
}

// namesModels reports whether some API may take a member for the name of a model.
func namesModels(member string) bool {
	letters := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, member)
	switch letters {
	case "engine", "engineid", "deployment", "deploymentid", "fallback", "fallbacks":
		return true
	}
	return strings.Contains(letters, "model")
}
