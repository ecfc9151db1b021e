package lint

import (
	"fmt"
	"time"
)

// processRules hold for servers on standard input and output.
var processRules = []Rule{
	{
		ID: "P016", Severity: Warning, Title: "server that does not end",
		Why:     "Clients close standard input and go; what does not end then stays, one process for each session.",
		Advice:  "End within two seconds of the end of standard input.",
		Source:  "MCP, stdio transport (shutdown)",
		Gateway: "The gateway ends the whole process group.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.Exit != nil && (l.Exit.Killed || l.Exit.Took > grace && !l.Busy) {
				how := fmt.Sprintf("the server ended %v after its input was closed", l.Exit.Took.Round(100*time.Millisecond))
				if l.Exit.Killed {
					how = "the server went on after its input was closed, and was killed"
				}
				say(here, "%s", how)
			}
		},
	},
	{
		ID: "P024", Severity: Error, Title: "orphaned processes",
		Why:     "What a server starts and leaves behind holds memory, ports and files until the machine is restarted.",
		Advice:  "End child processes before you end.",
		Source:  "MCP, stdio transport (shutdown); reports of hundreds of orphans",
		Gateway: "The gateway ends the whole process group.",
		Live: func(_ *Server, l *Live, say Say) {
			if l.Exit != nil && l.Exit.Orphans {
				say(here, "the server ended and left processes of its own behind")
			}
		},
	},
}
