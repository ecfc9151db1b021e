package prove

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// envEngine makes the test program an engine: it says how to answer "load".
const envEngine = "DRAGOMAN_TEST_ENGINE"

func TestMain(m *testing.M) {
	if answer := os.Getenv(envEngine); answer != "" {
		serveEngine(answer)
		return
	}
	os.Exit(m.Run())
}

// serveEngine is an engine that accepts texts of an even length.
func serveEngine(load string) {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var request struct {
			Op    string
			Texts []string
			Count int
		}
		if json.Unmarshal(lines.Bytes(), &request) != nil {
			os.Exit(1)
		}
		switch request.Op {
		case "hello":
			fmt.Println(`{"engine":"fake","version":"7"}`)
		case "load":
			if load == "dieLater" { // answers, and is gone
				fmt.Println(`{"error":"broken by this"}`)
				os.Exit(3)
			}
			if load == "die" {
				fmt.Fprintln(os.Stderr, "fatal: out of ideas")
				os.Exit(3)
			}
			fmt.Println(load)
		case "accepts":
			var accepted []bool
			for _, text := range request.Texts {
				accepted = append(accepted, len(text)%2 == 0)
			}
			b, _ := json.Marshal(map[string]any{"accepted": accepted})
			fmt.Println(string(b))
		case "sample":
			fmt.Println(`{"texts":["{\"a\":1}","no JSON"]}`)
		}
	}
}

// fakeEngine starts this program as an engine.
func fakeEngine(t *testing.T, load string) *Process {
	t.Helper()
	t.Setenv(envEngine, load)
	p, err := Start(t.Context(), os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// TestProcessDiesLater: an engine that dies of one schema after its answer is
// asked about the next one anew, which is not to blame.
func TestProcessDiesLater(t *testing.T) {
	p := fakeEngine(t, "dieLater")
	for range 3 {
		_, err := p.Read(t.Context(), json.RawMessage(`{"type":"object"}`))
		if !errors.Is(err, ErrRefused) || errors.Is(err, errDied) {
			t.Errorf("the engine's own word is %v", err)
		}
	}
}

func TestProcess(t *testing.T) {
	p := fakeEngine(t, `{"ok":true}`)
	if p.Name() != "fake 7" {
		t.Errorf("its name is %q", p.Name())
	}
	l, err := p.Read(t.Context(), json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	writes, err := l.Writes(t.Context(), []string{"{}", "{ }", "four"})
	if err != nil || !slices.Equal(writes, []bool{true, false, true}) {
		t.Errorf("%v, %v", writes, err)
	}
	texts, err := l.Sample(t.Context(), 2, 1)
	if err != nil || !slices.Equal(texts, []string{`{"a":1}`, "no JSON"}) {
		t.Errorf("%v, %v", texts, err)
	}
}

// An engine that only shows a part of the schema holds the model to that part.
func TestProcessThatShows(t *testing.T) {
	p := fakeEngine(t, `{"ok":true,"shown":{"type":"object","required":["a"]}}`)
	l, err := p.Read(t.Context(), json.RawMessage(`{"type":"object"}`))
	if err != nil {
		t.Fatal(err)
	}
	writes, err := l.Writes(t.Context(), []string{`{}`, `{"a":1}`})
	if err != nil || !slices.Equal(writes, []bool{false, true}) {
		t.Errorf("%v, %v", writes, err)
	}
}

// An engine that dies over a schema refuses it, and is there again for the next.
func TestProcessDiesAndComesBack(t *testing.T) {
	p := fakeEngine(t, "die")
	for range 2 {
		if _, err := p.Read(t.Context(), json.RawMessage(`{}`)); !errors.Is(err, ErrRefused) {
			t.Errorf("it says %v", err)
		}
	}
	if _, err := Start(t.Context(), filepath.Join(t.TempDir(), "nothing")); err == nil {
		t.Error("a program that is not there starts")
	}
}

func TestEnginesThatAreMissing(t *testing.T) {
	var none Engines
	if e, err := none.For(t.Context(), "openai"); err != nil || e != Engine(Sent{}) {
		t.Errorf("%v, %v", e, err)
	}
	for _, e := range []Engines{none, {Dir: t.TempDir()}} {
		for range 2 {
			if _, err := e.For(t.Context(), "vllm"); !errors.Is(err, ErrMissing) {
				t.Errorf("it says %v", err)
			}
		}
	}
}
