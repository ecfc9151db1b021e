package dragoman_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/dragoman-mcp/dragoman"
)

func TestEffectiveClass(t *testing.T) {
	yes, no := true, false
	tests := []struct {
		name   string
		effect dragoman.Effect
		hints  dragoman.Hints
		want   dragoman.Effect
	}{
		{"nobody says anything", dragoman.MayChange, dragoman.Hints{}, dragoman.MayChange},
		{"the server alone says read only", dragoman.MayChange, dragoman.Hints{ReadOnly: &yes}, dragoman.MayChange},
		{"the server alone says idempotent", dragoman.MayChange, dragoman.Hints{Idempotent: &yes}, dragoman.MayChange},
		{"the operator says read only", dragoman.ReadOnly, dragoman.Hints{}, dragoman.ReadOnly},
		{"the server doubts it", dragoman.ReadOnly, dragoman.Hints{ReadOnly: &no}, dragoman.MayChange},
		{"the operator says idempotent", dragoman.Idempotent, dragoman.Hints{ReadOnly: &no}, dragoman.Idempotent},
		{"the server doubts that", dragoman.Idempotent, dragoman.Hints{Idempotent: &no}, dragoman.MayChange},
		{"the server says more than the operator", dragoman.Idempotent, dragoman.Hints{ReadOnly: &yes}, dragoman.Idempotent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := dragoman.Tool{Declared: tt.effect, Hints: tt.hints}
			if got := tool.Effect(); got != tt.want {
				t.Errorf("Effect() = %s, want %s", got, tt.want)
			}
		})
	}
}

func TestPin(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, of := range [][3]string{
		{"s", "a", `{"name":"a"}`}, {"s", "b", `{"name":"a"}`}, {"s", "a", `{"name":"a" }`}, {"other", "a", `{"name":"a"}`},
		{"", "ab", ""}, {"", "a", "b"}, {"a", "b", ""}, {"ab", "", ""}, {"", "", "ab"},
	} {
		d := dragoman.Pin(of[0], of[1], []byte(of[2]))
		if other, taken := seen[d]; taken {
			t.Errorf("%q has the pin of %s", of, other)
		}
		seen[d] = fmt.Sprint(of)
	}
}

func TestProblemIsAnError(t *testing.T) {
	p := &dragoman.Problem{Code: dragoman.CodeDenied, Message: "Not today."}
	if got := p.Error(); got != "denied: Not today." {
		t.Errorf("Error() = %q", got)
	}
	if got := (&dragoman.Problem{Code: dragoman.CodeDenied}).Error(); got != "denied" {
		t.Errorf("Error() without a message = %q", got)
	}
	if got := dragoman.AsProblem(fmt.Errorf("calling: %w", p)); got != p {
		t.Errorf("AsProblem = %v", got)
	}
	if got := dragoman.AsProblem(errors.New("other")); got != nil {
		t.Errorf("AsProblem of another error = %v", got)
	}
}

func TestFieldName(t *testing.T) {
	for path, want := range map[string]string{"": "", "/city": "city", "/a/0/b": "b", "/a~1b": "a/b", "/a/x~0y": "x~y", "/a~01": "a~1"} {
		if got := (dragoman.Field{Path: path}).Name(); got != want {
			t.Errorf("the name of %q is %q, want %q", path, got, want)
		}
	}
}
