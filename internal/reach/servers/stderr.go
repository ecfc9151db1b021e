package servers

import (
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/observe/logpace"
)

// stderrLine is how much of a line that a server writes to its standard error goes to our
// log, in bytes.
const stderrLine = 4 << 10

// stderrLines returns what takes the lines that a local server writes to its
// standard error. Of a flood some go to the log. Why the server ends may be behind those.
func (c *connection) stderrLines() func(line string) {
	log := logpace.New(c.log)
	return func(line string) {
		line = c.mask.Hide(line) // before a cut could leave a part of a secret
		c.stderr.add(line)
		if len(line) > stderrLine {
			line = strings.ToValidUTF8(line[:stderrLine], "") + "…"
		}
		log.Info("stderr", "line", line)
	}
}
