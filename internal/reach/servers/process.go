package servers

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/dragoman-mcp/dragoman/internal/reach/sandbox"
	"github.com/dragoman-mcp/dragoman/internal/text/secret"
	"github.com/dragoman-mcp/dragoman/internal/wire/safehttp"
	"github.com/dragoman-mcp/dragoman/mcp"
)

// remote returns the transport to a server with a URL.
func (c *Config) remote(client *http.Client) mcp.Transport {
	return mcp.HTTP{URL: c.URL, Header: c.Header(), Client: client, SSE: c.Transport == SSE}
}

// Header returns the Headers, open: they are for the server at URL alone.
func (c *Config) Header() http.Header {
	header := make(http.Header, len(c.Headers))
	for name, value := range c.Headers {
		header.Set(name, value.Reveal())
	}
	return header
}

// Client returns a client for the server at URL, which keeps off addresses at which a
// machine finds its own cloud. It shows nothing but what its requests bring, and the
// certificate of the configuration. log is told of files of tls that are renewed, or cannot be
// used any more; nil for nobody.
func (c *Config) Client(log *slog.Logger) *http.Client {
	return c.TLS.Client(safehttp.Options{Control: c.control}, log)
}

// control refuses connections to addresses at which a machine finds its own
// cloud, unless the URL names the very address: a name that comes to mean one of
// them, or a server that sends us there, gets nowhere.
func (c *Config) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if u, err := url.Parse(c.URL); err == nil {
		if named, err := netip.ParseAddr(u.Hostname()); err == nil && named.Unmap() == to.Addr().Unmap() {
			return nil
		}
	}
	return safehttp.CheckLocal(to.Addr())
}

// local returns the transport to a server with a command. stderr is told what
// the process writes to its standard error, line by line.
func (c *Config) local(stderr func(line string)) mcp.Transport {
	return mcp.Command{
		New: func() *exec.Cmd {
			cmd := c.command()
			cmd.Env = c.environment(os.LookupEnv)
			return cmd
		},
		Stderr:    stderr,
		KillAfter: sandbox.Patience,
	}
}

// Process returns the command of a local server without a guard around it, for
// those who look after its process group themselves, as the linter does: it wants
// to see what a server leaves behind. A server with a sandbox has a guard all the
// same, and leaves nothing.
func (c *Config) Process() *exec.Cmd {
	cmd := exec.Command(c.program(), c.Args...)
	if c.Sandbox.On() {
		cmd = c.command()
	}
	cmd.Dir = c.Dir
	cmd.Env = c.environment(os.LookupEnv)
	return cmd
}

// program returns the program to start: an absolute path, or a name to look for in
// PATH, where what is found in the working directory is refused ([exec.ErrDot]). A
// relative path starts at the server's working directory.
func (c *Config) program() string {
	if filepath.IsAbs(c.Command) || !strings.ContainsAny(c.Command, `/\`) {
		return c.Command
	}
	path := filepath.Join(c.Dir, c.Command)
	if absolute, err := filepath.Abs(path); err == nil {
		return absolute
	}
	return path
}

// proxies are the inherited variables that may have a password.
var proxies = []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"}

// Secrets returns what the server is given and nobody else may see.
func (c *Config) Secrets(lookup func(string) (string, bool)) []secret.Text {
	all := slices.Concat(secret.InVariables(c.Env), secret.InArguments(c.Args), secret.InHeaders(c.Headers), secret.InAddress(c.URL))
	for _, name := range proxies {
		if value, ok := lookup(name); ok {
			all = append(all, secret.InAddress(value)...)
		}
	}
	return all
}

// Identity says where a server is: its URL, or its command with arguments.
func (c *Config) Identity() string {
	if c.URL != "" {
		return c.URL
	}
	return fmt.Sprintf("%s %q", c.Command, c.Args)
}
