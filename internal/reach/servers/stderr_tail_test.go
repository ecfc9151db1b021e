package servers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-mcp/dragoman/internal/observe/logpace"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
)

// What went wrong stands before what followed from it: the first useful line is
// kept, and the last ones.
func TestTail(t *testing.T) {
	for _, tt := range []struct{ name, wrote, want string }{
		{"Node", "node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module 'x'\n    at a (b:1)\n    at c (d:2) {\n}\n\nNode.js v22.1.0\n",
			"Error: Cannot find module 'x'"},
		{"Python", "Traceback (most recent call last):\n  File \"a.py\", line 1, in <module>\n    import x\n    ^^^^^^^^\nModuleNotFoundError: No module named 'x'\n",
			"import x; ModuleNotFoundError: No module named 'x'"},
		{"Go", "panic: no token\n\ngoroutine 1 [running]:\nmain.main()\n", "panic: no token; main.main()"},
		{"npm", "npm warn deprecated a@1\nnpm error code E404\nnpm error 404 Not Found\n", "npm error code E404; npm error 404 Not Found"},
		{"much", "first\n" + strings.Repeat("again\n", 3) + "1\n2\n3\n4\nlast\n", "first; again; 3; 4; last"},
		{"long", strings.Repeat("x", 400), strings.Repeat("x", tailLine) + "…"},
		{"nothing", "\n \n", ""},
	} {
		var kept tail
		for line := range strings.Lines(tt.wrote) {
			kept.add(line)
		}
		if got := kept.String(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		if kept.clear(); kept.String() != "" {
			t.Errorf("%s: it is not empty", tt.name)
		}
	}
}

// A server that writes more than goes to the log says at its end why it ends, as any other.
func TestLastWordsOfAFlood(t *testing.T) {
	var logged records
	c := &connection{log: logged.logger(), mask: secret.NewMask(secret.New("canary-of-the-licence"))}
	write := c.stderrLines()
	for i := range 2 * logpace.Burst {
		write(fmt.Sprint("connecting, try ", i))
	}
	write("FATAL: the licence canary-of-the-licence has expired")
	got := c.stderr.String()
	if !strings.Contains(got, "; FATAL: the licence ") || !strings.HasSuffix(got, " has expired") || strings.Contains(got, "canary") {
		t.Errorf("it wrote: %s", got)
	}
	if n := len(logged.with(`"msg":"stderr"`)); n > logpace.Burst+logpace.Rate {
		t.Errorf("%d lines in the log", n)
	}
}
