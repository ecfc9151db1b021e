package prove

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/dragoman-mcp/dragoman/schema"
)

// An Engine says what a model can write under a schema. It is used by one search
// at a time.
type Engine interface {
	// Name names the engine and its version, as a proof cites them.
	Name() string
	// Read makes the engine read a schema as it is sent. The error is
	// [ErrRefused] where the engine does not take the schema, and anything else
	// where the engine itself is in trouble.
	Read(ctx context.Context, sent json.RawMessage) (Language, error)
}

// ErrRefused means that an engine does not take a schema.
var ErrRefused = errors.New("the engine refuses the schema")

// A Language is what a model can write under one schema. It is good until its
// engine reads the next schema.
type Language interface {
	// Shown is the schema that the model sees.
	Shown() json.RawMessage
	// Writes reports for each text whether the model can write it.
	Writes(ctx context.Context, texts []string) ([]bool, error)
	// Sample lets the engine make up at most count texts; none where it cannot.
	Sample(ctx context.Context, count int, seed uint64) ([]string, error)
}

// Sent is an engine that holds the model to the schema that is sent, as package
// schema understands it.
type Sent struct{}

// Name says what it goes by.
func (Sent) Name() string { return "the schema as it is sent" }

// Read never refuses.
func (Sent) Read(_ context.Context, sent json.RawMessage) (Language, error) {
	return newShown(sent), nil
}

// shown is the language of a schema that the model keeps to.
type shown struct {
	schema json.RawMessage
	judge  *schema.Validator
}

func newShown(s json.RawMessage) *shown {
	return &shown{s, schema.NewOpenAPIValidator(s)}
}

func (s *shown) Shown() json.RawMessage { return s.schema }

func (s *shown) Writes(ctx context.Context, texts []string) ([]bool, error) {
	writes := make([]bool, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		writes[i] = len(s.judge.Validate(json.RawMessage(text))) == 0
	}
	return writes, nil
}

func (s *shown) Sample(context.Context, int, uint64) ([]string, error) { return nil, nil }
