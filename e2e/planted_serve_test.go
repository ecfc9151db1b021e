package e2e

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A plantedFile is a planted server that this program carries over its own standard input
// and output, for programs of others, which start what they judge.
type plantedFile struct {
	SDK, Fault string
	Modern     bool
	Spec       json.RawMessage
}

// plantedSuffix ends the name of a plantedFile. It is all that the command line has: mcp-vet
// takes an argument that looks like the name of a package for one.
const plantedSuffix = ".planted.json"

func isPlantedFile(args []string) bool {
	return len(args) == 2 && strings.HasSuffix(args[1], plantedSuffix)
}

// servePlanted serves a plantedFile until its input ends.
func servePlanted(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var f plantedFile
	var spec plantedSpec
	if err := json.Unmarshal(text, &f); err != nil {
		return err
	}
	if err := json.Unmarshal(f.Spec, &spec); err != nil {
		return err
	}
	p := newPlanted(spec, f.Modern)
	if f.SDK == "go" {
		server, err := sdkServer(p)
		if err != nil {
			return err
		}
		return server.Run(context.Background(), &sdk.StdioTransport{})
	}
	bare := &bareServer{planted: p, fault: f.Fault}
	out, in, err := bare.pipe(context.Background())
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(in, os.Stdin) // its end is the end of the server, whatever ended it
		in.Close()
	}()
	_, err = io.Copy(os.Stdout, out)
	return err
}

// command is what starts the server of a run, over lines, in a folder of its own.
func (r *plantedRun) command(t *testing.T, program, script, dir string) []string {
	t.Helper()
	if r.path != "" {
		text := "process.argv.splice(2, 9, '" + r.sdk + "', 'stdio', " + string(marshal(r.path)) + ");\n" +
			"await import(" + string(marshal("file://"+filepath.ToSlash(script))) + ");\n"
		return []string{program, placed(t, dir, "server.mjs", []byte(text))}
	}
	f := plantedFile{SDK: r.sdk, Modern: r.era == "modern", Spec: marshal(r.spec)}
	if r.Wire {
		f.Fault = r.ID
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, placed(t, dir, "server"+plantedSuffix, marshal(f))}
}

func placed(t *testing.T, dir, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
