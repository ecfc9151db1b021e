package dialect

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	dragoman "github.com/dragoman-mcp/dragoman"
	"github.com/dragoman-mcp/dragoman/schema"
)

// A Repair is one thing that was put right in a model's arguments.
type Repair struct {
	// Rule names it: "emptyArguments".
	Rule string `json:"rule"`
	// Path is a JSON pointer into the arguments; empty for the whole.
	Path string `json:"path"`
}

// Decode brings the arguments that a model wrote back into the form that the
// MCP server asked for. finish is the finish_reason of the model's message, or
// empty. Either there are arguments, valid for the server, with the repairs
// that they needed, or a Problem to tell the model: [dragoman.CodeTruncated] or
// [dragoman.CodeInvalidArguments].
func (p *Plan) Decode(raw, finish string) (json.RawMessage, []Repair, *dragoman.Problem) {
	text := strings.TrimSpace(raw)
	cut := finish == "length" || finish == "model_length"
	var repairs []Repair
	if text == "" || text == "null" {
		if cut {
			return nil, nil, truncated()
		}
		text, repairs = "{}", append(repairs, Repair{Rule: "emptyArguments"})
	}
	value, err := schema.Parse([]byte(text))
	if err != nil {
		if e, ok := errors.AsType[*schema.SyntaxError](err); ok && e.Incomplete {
			return nil, nil, truncated()
		}
		return nil, nil, &dragoman.Problem{
			Code:    dragoman.CodeInvalidArguments,
			Message: fmt.Sprintf("The arguments are not valid JSON: %v. Send one JSON object.", err),
		}
	}
	if value.Kind() != schema.Object {
		return nil, nil, invalidArguments([]schema.Violation{{Expected: "object"}})
	}
	if violations := p.validator.ValidateNode(value); len(violations) > 0 {
		return nil, nil, invalidArguments(violations)
	}
	return value.Bytes(), repairs, nil
}

// Encode is the way that a model would write arguments that are in the server's
// form. It is the inverse of Decode, for replaying and for tests.
func (p *Plan) Encode(arguments json.RawMessage) (json.RawMessage, error) {
	value, err := schema.Parse(arguments)
	if err != nil {
		return nil, fmt.Errorf("encoding arguments: %w", err)
	}
	return value.Bytes(), nil
}

func truncated() *dragoman.Problem {
	return &dragoman.Problem{
		Code:    dragoman.CodeTruncated,
		Message: "The arguments end before they are complete, so the call was not made. Make it again, with shorter arguments if they were long.",
	}
}

// maxFields is the number of wrong arguments that a model is told about.
const maxFields = 8

func invalidArguments(violations []schema.Violation) *dragoman.Problem {
	p := &dragoman.Problem{Code: dragoman.CodeInvalidArguments}
	var words []string
	for i, v := range violations {
		if i == maxFields {
			words = append(words, fmt.Sprintf("and %d more", len(violations)-i))
			break
		}
		p.Fields = append(p.Fields, dragoman.Field{Path: v.Path, Expected: v.Expected, Missing: v.Missing})
		words = append(words, v.String())
	}
	p.Message = "The arguments do not fit the tool's input schema: " + strings.Join(words, "; ") + "."
	return p
}
