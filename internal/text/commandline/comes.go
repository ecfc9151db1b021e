package commandline

import (
	"slices"
	"strings"
)

// origins are where programs that start servers come from.
var origins = []struct{ programs, from string }{
	{"node nodejs npx npm", "Node.js (https://nodejs.org)"},
	{"uv uvx", "uv (https://docs.astral.sh/uv)"},
	{"python pythonw py pip", "Python (https://www.python.org)"},
	{"pipx", "pipx (https://pipx.pypa.io)"},
	{"bun bunx", "Bun (https://bun.sh)"},
	{"deno", "Deno (https://deno.com)"},
	{"pnpm pnpx", "pnpm (https://pnpm.io)"},
	{"yarn", "Yarn (https://yarnpkg.com)"},
	{"docker", "Docker (https://docs.docker.com/get-docker)"},
	{"podman", "Podman (https://podman.io)"},
	{"go", "Go (https://go.dev/dl)"},
	{"java", "a Java runtime (https://adoptium.net)"},
	{"dotnet dnx", ".NET (https://dotnet.microsoft.com)"},
	{"ruby gem", "Ruby (https://www.ruby-lang.org)"},
	{"php", "PHP (https://www.php.net)"},
}

// Missing says what to do where a program is not found: what it comes with, for those
// that many servers are started by. Others are to be looked for.
func Missing(command string) string {
	name := programName(command)
	for _, o := range origins {
		if slices.Contains(strings.Fields(o.programs), name) {
			return "install " + o.from + ", which " + name + " comes with, or give its whole path"
		}
	}
	return "install it, or give its whole path"
}
