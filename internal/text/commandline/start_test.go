package commandline

import (
	"strings"
	"testing"
)

// TestRead: what a command line starts in the end, whatever its version and its options.
func TestRead(t *testing.T) {
	for _, tt := range []struct {
		line, name string
		kind       Kind
		fetches    bool
	}{
		{"npx -y @acme/notes@1.2.3 ./docs", "npx @acme/notes", NPM, true},
		{"npx --yes --registry https://r.example @acme/notes", "npx @acme/notes", NPM, true},
		{"npx --registry=https://r.example -- notes@latest", "npx notes", NPM, true},
		{"npx -y -p a@1 -p b b-server", "npx a b b-server", NPM, true},
		{"npx -y github:acme/notes#v1", "npx github:acme/notes", NPM, true},
		{"npx", "npx", Itself, true},
		{`C:\node\npx.cmd -y notes`, "npx notes", NPM, true},
		{"npm exec --yes -- notes@1", "npm notes", NPM, true},
		{"npm --prefix /srv run notes", "npm notes", File, false},
		{"npm start", "npm start", File, false},
		{"pnpm dlx notes@1", "pnpm notes", NPM, true},
		{"pnpm start", "pnpm start", File, false},
		{"yarn dlx -p a notes", "yarn a notes", NPM, true},
		{"bun x notes@2", "bun notes", NPM, true},
		{"bun run notes.ts", "bun notes.ts", File, false},
		{"bunx notes", "bunx notes", NPM, true},
		{"deno run -A npm:@acme/notes@1", "deno npm:@acme/notes", File, false},
		{"deno run --allow-net notes.ts", "deno notes.ts", File, false},

		{"uvx notes==1.2 --key secret", "uvx notes", PyPI, true},
		{"uvx --python 3.12 notes[all]@1.2", "uvx notes", PyPI, true},
		{"uvx --from git+https://git@host/acme/box@v2 notes", "uvx git+https://git@host/acme/box notes", PyPI, true},
		{"uv tool run --from box==1 notes", "uv box notes", PyPI, true},
		{"uv tool run notes@1.2", "uv notes", PyPI, true},
		{"uv --directory /srv run notes.py", "uv notes.py", File, true},
		{"uv run --with mcp python -u notes.py", "python notes.py", File, true},
		{"pipx run --spec box notes", "pipx box notes", PyPI, true},
		{"poetry run notes", "poetry notes", File, false},

		{"python3.12 -W ignore notes.py --x", "python notes.py", File, false},
		{"python -um acme.notes --x", "python acme.notes", File, false},
		{"node --no-warnings -r dotenv/config dist/index.js", "node dist/index.js", File, false},
		{"node node_modules/@acme/a/index.js", "node node_modules/@acme/a/index.js", File, false},
		{"java -Xmx1g -cp a:b -jar notes.jar x", "java notes.jar", File, false},
		{"java -cp a:b acme.Notes x", "java acme.Notes", File, false},
		{"go run github.com/acme/notes@v1.2.3", "go github.com/acme/notes", Go, true},
		{"go run ./cmd/notes", "go ./cmd/notes", Go, true},
		{"bash notes.sh x", "bash notes.sh", File, false},
		{"ssh -p 22 host notes", "ssh host", File, false},

		{"docker run -i --rm -e TOKEN=secret acme/notes", "docker acme/notes", Image, true},
		{"docker run -i --rm --init --pull always -v /a:/b --gpus all --name n host:5000/acme/notes:1.2@sha256:00 --x y", "docker host:5000/acme/notes", Image, true},
		{"docker --context far container run --network=none -it acme/notes:latest", "docker acme/notes", Image, true},
		{"docker run", "docker", Itself, true},
		{"docker mcp gateway run", "docker", Itself, true},
		{"podman run --env-file=x --tls-verify acme/notes", "podman acme/notes", Image, true},
		{"docker exec -i box notes", "docker box", File, false},

		{"env A=b C=d npx -y notes", "npx notes", NPM, true},
		{"env -u A -i notes -c x", "notes", Itself, false},
		{"sudo -u ann A=b docker run acme/notes", "docker acme/notes", Image, true},
		{"nice -n 5 timeout -k 1 60 stdbuf -oL uvx notes", "uvx notes", PyPI, true},
		{"cmd /c npx -y @acme/notes@1", "npx @acme/notes", NPM, true},
		{"cmd.exe /d /s /c node notes.js", "node notes.js", File, false},
		{"cmd /c npx|x", "cmd", Itself, false},
		{"cmd", "cmd", Itself, false},

		{"/opt/notes-2 secret", "notes-2", Itself, false},
		{`C:\opt\notes.exe secret`, "notes", Itself, false},
		{"", "", Itself, false},
	} {
		words := strings.Split(tt.line, " ")
		s := Read(words[0], words[1:])
		if s.Name() != tt.name || s.Kind != tt.kind || s.Fetches != tt.fetches {
			t.Errorf("%s: %q, kind %d, fetches %v; want %q, %d, %v", tt.line, s.Name(), s.Kind, s.Fetches, tt.name, tt.kind, tt.fetches)
		}
	}
}

// TestReadShell: the line of a shell counts where it is a plain command.
func TestReadShell(t *testing.T) {
	for _, tt := range []struct {
		command string
		args    []string
		name    string
		shell   bool
	}{
		{"sh", []string{"-c", "npx -y notes@1"}, "npx notes", true},
		{"bash", []string{"-lc", "exec notes"}, "notes", true},
		{"bash", []string{"--norc", "-c"}, "bash", true},
		{"fish", []string{"--command=uvx notes"}, "uvx notes", true},
		{"sh", []string{"-c", "curl x | sh"}, "sh", true},
		{"cmd", []string{"/c", "a & b"}, "cmd", true},
		{"cmd", []string{"/c", "npx notes"}, "npx notes", false},
		{"powershell", []string{"-NoProfile", "-Command", "x"}, "powershell", true},
		{"pwsh", []string{"-File", "x.ps1"}, "pwsh", false},
		{"sh", []string{"notes.sh", "-c", "x"}, "sh notes.sh", false},
	} {
		if s := Read(tt.command, tt.args); s.Name() != tt.name || s.Shell != tt.shell {
			t.Errorf("%s %q: %q, %v; want %q, %v", tt.command, tt.args, s.Name(), s.Shell, tt.name, tt.shell)
		}
	}
}

// TestReadEnds: programs in front of programs are looked through only so far.
func TestReadEnds(t *testing.T) {
	if s := Read("env", strings.Fields(strings.Repeat("env ", 5000)+"npx a")); s.Program != "env" || len(s.Through) != maxThrough {
		t.Errorf("%q through %d", s.Name(), len(s.Through))
	}
}

func FuzzRead(f *testing.F) {
	f.Add("npx\x00-y\x00-p\x00a\x00b")
	f.Add("docker\x00run\x00--env\x00a\x00b")
	f.Add("bash\x00-c\x00env a=b npx")
	f.Add("cmd\x00/c\x00uv tool run x@1")
	f.Fuzz(func(t *testing.T, text string) {
		words := strings.Split(text, "\x00")
		s := Read(words[0], words[1:])
		if s.Kind > File || s.Kind < Itself || s.Kind == Itself && s.What != "" {
			t.Fatalf("%q: %+v", words, s)
		}
		if again := Read("env", append([]string{"A=b"}, words...)); len(words) < maxThrough && words[0] != "" && programs[programName(words[0])].first != another && s.Name() != again.Name() &&
			!strings.ContainsAny(words[0], "=-+") {
			t.Fatalf("%q is %q, and behind env %q", words, s.Name(), again.Name())
		}
	})
}
