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
	// Rule names it: "numberFromString".
	Rule string `json:"rule"`
	// Path is a JSON pointer into the arguments; empty for the whole.
	Path string `json:"path"`
}

// Grade returns how sure the repair is.
func (r Repair) Grade() Grade {
	if likelyRules[r.Rule] {
		return Likely
	}
	return Certain
}

// MaxArguments is the length of the arguments, in bytes, that Decode reads.
const MaxArguments = 4 << 20

// decodingTimes is how often a value may be judged while it is decoded, at the price
// that a budget has for it: as it came, in either form, and after each repair.
const decodingTimes = 3

// within returns p with judges that pay out of one budget.
func (p *Plan) within(b *schema.Budget) *Plan {
	inside := *p
	inside.judge = p.judge.Within(b)
	inside.budget = b
	if p.record != nil {
		r := *p.record
		r.sent, r.judge, r.budget = r.sent.Within(b), r.judge.Within(b), b
		inside.record = &r
	}
	return &inside
}

// Decode brings the arguments that a model wrote back into the form that the
// MCP server asked for. finish is the finish_reason of the model's message, or
// empty. Either there are arguments, valid for the server, with the repairs
// that they needed, or a Problem to tell the model: [dragoman.CodeTruncated] or
// [dragoman.CodeInvalidArguments].
//
// Arguments that end too early are never completed, whatever finish says: the
// call would run with a part of what the model meant. And nothing is repaired
// that could be read in two ways; see [Plan.DecodeAs].
//
// The nil Plan of a name that [Document.Find] does not know, and the zero Plan, decode
// nothing: the Problem is [dragoman.CodeUnknownTool].
func (p *Plan) Decode(raw, finish string) (json.RawMessage, []Repair, *dragoman.Problem) {
	return p.DecodeAs(raw, finish, Certain)
}

// DecodeAs is [Plan.Decode] with repairs of some [Grade]. [GradeOf] tells which
// one a tool may have.
func (p *Plan) DecodeAs(raw, finish string, grade Grade) (json.RawMessage, []Repair, *dragoman.Problem) {
	if p == nil || p.judge == nil {
		return nil, nil, &dragoman.Problem{Code: dragoman.CodeUnknownTool, Message: "There is no such tool."}
	}
	if len(raw) > MaxArguments {
		return nil, nil, &dragoman.Problem{
			Code:    dragoman.CodeInvalidArguments,
			Message: fmt.Sprintf("The arguments are longer than %d bytes.", MaxArguments),
		}
	}
	value, repairs, problem := readArguments(raw, finish)
	if problem != nil {
		return nil, nil, problem
	}
	for _, r := range repairs {
		if r.Grade() > grade {
			return nil, nil, &dragoman.Problem{
				Code:    dragoman.CodeInvalidArguments,
				Message: "The arguments are not valid JSON: a character in them is broken. Send them again, as valid UTF-8.",
			}
		}
	}
	p = p.within(schema.NewBudget(value, decodingTimes))
	value, more, violations := p.renamed(value, grade)
	if len(violations) > 0 {
		return nil, nil, invalidArguments(violations)
	}
	repairs = append(repairs, more...)
	x, more, problem := p.restore(value)
	if problem != nil {
		return nil, nil, problem
	}
	repairs = append(repairs, more...)
	x, more, problem = p.settleInside(x, more, grade)
	if problem != nil {
		return nil, nil, problem
	}
	repairs = append(repairs, more...)
	x, more = p.plainIntegers(x)
	return x.Bytes(), append(repairs, more...), nil
}

// settleInside puts the names right in what was read out of texts, and in objects
// that the model wrote in the server's form where another was asked for.
func (p *Plan) settleInside(x *schema.Node, done []Repair, grade Grade) (*schema.Node, []Repair, *dragoman.Problem) {
	read := p.record != nil && p.record.flattens
	for _, r := range done {
		read = read || r.Rule == "objectFromString" || r.Rule == "arrayFromString"
	}
	if !read {
		return x, nil, nil
	}
	repairs, violations := p.renamedInside(x, grade)
	if len(violations) > 0 {
		return nil, nil, invalidArguments(violations)
	}
	if len(repairs) == 0 {
		return x, nil, nil
	}
	x, more, violations := coerce(x, p.judge)
	if len(violations) > 0 {
		return nil, nil, invalidArguments(violations)
	}
	return x, append(repairs, more...), nil
}

// GradeOf returns how sure the repair of a tool's arguments has to be. Only
// where the operator says that it changes nothing may a guess be taken; what a
// server says of itself is not trusted.
func GradeOf(tool *dragoman.Tool) Grade {
	if tool != nil && tool.Effect() == dragoman.ReadOnly {
		return Likely
	}
	return Certain
}

// readArguments reads the text of arguments as an object.
func readArguments(raw, finish string) (*schema.Node, []Repair, *dragoman.Problem) {
	text := strings.TrimSpace(raw)
	if text == "" || text == "null" || text == `""` {
		if finish == "length" || finish == "model_length" {
			return nil, nil, truncated()
		}
		return schema.NewObject(), []Repair{{Rule: "emptyArguments"}}, nil
	}
	value, repairs, problem := readValue(text)
	if problem != nil {
		return nil, nil, problem
	}
	if value.Kind() == schema.String {
		inner, more, problem := readValue(strings.TrimSpace(value.Text()))
		if problem == nil && inner.Kind() == schema.Object {
			return inner, append(append(repairs, Repair{Rule: "doubleEncoding"}), more...), nil
		}
		if problem != nil && problem.Code == dragoman.CodeTruncated {
			return nil, nil, problem
		}
	}
	if value.Kind() != schema.Object {
		return nil, nil, invalidArguments([]schema.Violation{{Expected: "object"}})
	}
	return value, repairs, nil
}

// readValue reads strictly, and tolerantly where that fails.
func readValue(text string) (*schema.Node, []Repair, *dragoman.Problem) {
	value, err := schema.Parse([]byte(text))
	if err == nil {
		return value, nil, nil
	}
	if e, ok := errors.AsType[*schema.SyntaxError](err); ok && e.Incomplete {
		return nil, nil, truncated()
	}
	value, rules, tolerantErr := readTolerantly(text)
	switch {
	case tolerantErr == errCut:
		return nil, nil, truncated()
	case tolerantErr != nil:
		if _, twice := errors.AsType[errTwice](tolerantErr); twice || tolerantErr == errGlued || tolerantErr == errBackslash {
			err = tolerantErr
		}
		return nil, nil, &dragoman.Problem{
			Code:    dragoman.CodeInvalidArguments,
			Message: fmt.Sprintf("The arguments are not valid JSON: %v. Send one JSON object.", err),
		}
	}
	var repairs []Repair
	for _, rule := range rules {
		repairs = append(repairs, Repair{Rule: rule})
	}
	return value, repairs, nil
}

// restore maps a value back and coerces it until the server's schema takes it.
func (p *Plan) restore(value *schema.Node) (*schema.Node, []Repair, *dragoman.Problem) {
	if p.record == nil {
		x, repairs, violations := coerce(value, p.judge)
		if len(violations) > 0 {
			return nil, nil, invalidArguments(violations)
		}
		return x, repairs, nil
	}
	direct, err := p.record.decode(value.Clone())
	if err == nil && len(p.judge.ValidateNode(direct)) == 0 {
		return direct, nil, nil
	}
	if errors.Is(err, errAmbiguous) || errors.Is(err, errWalk) {
		return nil, nil, notUnderstood(err)
	}
	// First into the form that was asked for, then back.
	asked, repairs, _ := coerce(value.Clone(), p.record.sent)
	if mapped, mapErr := p.record.decode(asked); mapErr == nil {
		x, more, violations := coerce(mapped, p.judge)
		if len(violations) == 0 {
			return x, append(repairs, more...), nil
		}
	}
	if err == nil {
		x, repairs, violations := coerce(direct, p.judge)
		if len(violations) == 0 {
			return x, repairs, nil
		}
		if len(p.judge.ValidateNode(value)) == 0 {
			return value, []Repair{{Rule: "originalForm"}}, nil
		}
		return nil, nil, invalidArguments(p.record.written(value, violations))
	}
	if len(p.judge.ValidateNode(value)) == 0 {
		return value, []Repair{{Rule: "originalForm"}}, nil
	}
	return nil, nil, notUnderstood(err)
}

func notUnderstood(err error) *dragoman.Problem {
	return &dragoman.Problem{
		Code:    dragoman.CodeInvalidArguments,
		Message: "The arguments cannot be understood: " + err.Error() + ".",
	}
}

// Encode is the way that a model would write arguments that are in the server's
// form. It is the inverse of Decode, for replaying and for tests. The error
// says why these arguments cannot be written in this dialect; the report says
// where that can be.
func (p *Plan) Encode(arguments json.RawMessage) (json.RawMessage, error) {
	value, err := schema.Parse(arguments)
	if err != nil {
		return nil, fmt.Errorf("encoding arguments: %w", err)
	}
	if p.record != nil {
		if value, err = p.record.encode(value); err != nil {
			return nil, fmt.Errorf("encoding arguments: %w", err)
		}
	}
	return value.Bytes(), nil
}

func truncated() *dragoman.Problem {
	return &dragoman.Problem{
		Code:    dragoman.CodeTruncated,
		Message: "The arguments end before they are complete, so the call was not made. Make it again, with shorter arguments if they were long.",
	}
}
