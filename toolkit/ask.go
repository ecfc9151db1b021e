package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// What became of a question that was not answered. [Ask] returns these wrapped in what
// the model is told, unless the tool makes something else of them.
var (
	// ErrDeclined: the person said no.
	ErrDeclined = errors.New("toolkit: the user declined")
	// ErrDismissed: the person closed the form, or gave no answer in time.
	ErrDismissed = errors.New("toolkit: the user gave no answer")
	// ErrCannotAsk: nobody can be asked, such as where the client shows no forms.
	ErrCannotAsk = errors.New("toolkit: nobody can be asked")
)

// Ask asks the person behind the client to fill in a form, and returns what they filled
// in:
//
//	answer, err := toolkit.Ask[struct {
//		Sure bool `json:"sure" title:"Delete them all?"`
//	}](ctx, "There are 14 notes.")
//	if err != nil || !answer.Sure {
//		return Done{}, err
//	}
//
// The fields of T are those of the form, with the tags of arguments. MCP's forms are
// flat: texts, numbers, booleans, times, texts with an enum, and lists of such. [FormSchema]
// says whether a type is one.
//
// It works in both eras of MCP, and in one way: the first time Ask returns an error,
// which the function returns, too. The person is asked, the function is called again
// from its beginning, and this time Ask returns the answer. So do nothing before Ask
// that must not be done twice. A function may ask several times. An answer belongs to
// its question, in its words, in a call with these arguments; where any of it is
// another the second time, it is asked anew. While somebody is asked no time limit
// runs, and nothing of the function waits.
//
// Clients make up answers as they like, as they do arguments: an answer is checked as
// these are, and proves nothing. Without an answer the error is one of [ErrDeclined],
// [ErrDismissed] and [ErrCannotAsk], and says so to the model. Only tools can ask, with
// the context that they were given.
func Ask[T any](ctx context.Context, message string) (T, error) {
	var answer T
	f, err := formFor[T]()
	if err != nil {
		return answer, fmt.Errorf("Ask: %w", err)
	}
	r, ok := ctx.Value(runningKey{}).(*running)
	if !ok || r.asks == nil {
		return answer, unanswered(ErrCannotAsk, "The user cannot be asked from here.")
	}
	content, err := r.asks.answer(r.Request, message, f.schema)
	if err != nil {
		return answer, err
	}
	return answer, f.read(content, &answer)
}

// read reads an answer, and checks it as arguments are.
func (f *form) read(content map[string]any, into any) error {
	if content == nil {
		content = map[string]any{}
	}
	data, err := json.Marshal(content)
	if err != nil {
		return err
	}
	a, err := f.binding.accept(data)
	if err == nil {
		err = a.decode(into)
	}
	if err != nil {
		return Refuse("What the user filled in cannot be used: %s", err)
	}
	return nil
}

// unanswered is an error for the model and for the tool.
func unanswered(what error, message string) error {
	return &noAnswer{&Refusal{Code: codeRefused, Message: message}, what}
}

type noAnswer struct {
	told *Refusal
	what error
}

func (n *noAnswer) Error() string   { return n.told.Error() }
func (n *noAnswer) Unwrap() []error { return []error{n.told, n.what} }
