package toolkit

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
)

// checkTime bounds the check of one key at start.
const checkTime = 10 * time.Second

// A Key is a secret from the environment, such as the API key of the service
// behind the tools. List it in [Options.Keys], so that a server without it does
// not start and says what is missing. Printing a Key prints no secret.
type Key struct {
	// Env is the name of the environment variable.
	Env string
	// Hint tells where to get the key.
	Hint string
	// Check tries the key when [Main] starts, for at most ten seconds; its error
	// is printed. Nil: the key must only be there.
	Check func(ctx context.Context, value string) error
}

// Value is the secret, without surrounding space; empty if it is not set. It is
// read each time, so a key may be renewed by whoever sets the environment.
func (k *Key) Value() string { return strings.TrimSpace(os.Getenv(k.Env)) }

// String hides the secret.
func (k *Key) String() string { return "[key from " + k.Env + "]" }

// GoString hides the secret.
func (k *Key) GoString() string { return k.String() }

// LogValue hides the secret.
func (k *Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

func (k *Key) present() error {
	if k == nil || k.Env == "" {
		return fmt.Errorf("a Key without Env: name the environment variable")
	}
	value := k.Value()
	problem := ""
	switch {
	case value == "":
		problem = "is not set"
	case strings.ContainsAny(value, "\r\n\x00"):
		problem = "has a line break in it"
	default:
		return nil
	}
	if k.Hint != "" {
		return fmt.Errorf("environment variable %s %s: %s", k.Env, problem, k.Hint)
	}
	return fmt.Errorf("environment variable %s %s", k.Env, problem)
}

// try runs the author's check.
func (k *Key) try(ctx context.Context) error {
	if k.Check == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if err := k.Check(ctx, k.Value()); err != nil {
		return fmt.Errorf("environment variable %s does not work: %w", k.Env, err)
	}
	return nil
}
