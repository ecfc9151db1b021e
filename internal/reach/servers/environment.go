package servers

import (
	"runtime"
	"strings"
)

// inherited are the variables that a local server gets from our environment:
// what programs need to find themselves, and nothing that may be a secret of
// ours. The first six are the list of the specification's own SDKs.
var inherited = []string{
	"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER",
	"LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR",
	"SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",
}

var inheritedWindows = []string{
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROCESSOR_ARCHITECTURE",
	"PROGRAMDATA", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

// environment returns the variables of a local server: those that it inherits, and its own.
func (c *Config) environment(lookup func(string) (string, bool)) []string {
	names := inherited
	if runtime.GOOS == "windows" {
		names = append(names[:len(names):len(names)], inheritedWindows...)
	}
	var env []string
	for _, name := range names {
		if _, own := c.Env[name]; own {
			continue
		}
		// A shell function in a variable is code, not a value.
		if value, ok := lookup(name); ok && !strings.HasPrefix(value, "()") {
			env = append(env, name+"="+value)
		}
	}
	for name, value := range c.Env {
		env = append(env, name+"="+value.Reveal())
	}
	return env
}
