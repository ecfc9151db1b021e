package toolkit

import (
	"context"
	"errors"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func refused(err error) bool {
	_, ok := errors.AsType[*Refusal](err)
	return ok
}

func TestFolder(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "precious.txt")
	if err := os.WriteFile(outside, []byte("keep"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.WriteFile("a/b/note.txt", []byte("hello"), false); err != nil {
		t.Fatal(err)
	}
	if data, err := f.ReadFile("a/./b/note.txt", 5); err != nil || string(data) != "hello" {
		t.Errorf("read: %q, %v", data, err)
	}
	if data, err := f.ReadFile("a/b/note.txt", math.MaxInt64); err != nil || string(data) != "hello" {
		t.Errorf("read without a limit: %q, %v", data, err)
	}
	bad := []string{"", "..", "../x", "a/../../x", "/etc/passwd", `..\x`, `C:\x`, "C:x", "a\x00b", "a", "a/", ".", "missing.txt", "a/b/note.txt/x"}
	if runtime.GOOS != "windows" {
		for name, target := range map[string]string{"link": outside, "up": filepath.Dir(outside)} {
			if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		bad = append(bad, "link", "up/precious.txt")
	}
	for _, name := range bad {
		if data, err := f.ReadFile(name, 100); !refused(err) || strings.Contains(err.Error(), dir) {
			t.Errorf("read %q: %q, %v; want a refusal that hides the folder", name, data, err)
		}
		if name != "missing.txt" {
			if err := f.WriteFile(name, nil, true); !refused(err) {
				t.Errorf("write %q: %v", name, err)
			}
		}
		if name != "link" { // a link is a file of the folder's, what it points to is not
			if err := f.Remove(name); !refused(err) {
				t.Errorf("remove %q: %v", name, err)
			}
		}
	}
	if _, err := f.ReadFile("a/b/note.txt", 4); !refused(err) {
		t.Errorf("read of too large a file: %v", err)
	}
	if err := f.WriteFile("a/b/note.txt", []byte("x"), false); !refused(err) {
		t.Errorf("write over a file: %v", err)
	}
	if err := f.WriteFile("z.txt", []byte("x"), true); err != nil {
		t.Error(err)
	}
	if runtime.GOOS != "windows" {
		if err := f.Remove("link"); err != nil {
			t.Error(err)
		}
		if err := f.Remove("up"); err != nil {
			t.Error(err)
		}
	}
	names, more, err := f.Files(10)
	if diff := cmp.Diff([]string{"a/b/note.txt", "z.txt"}, names); err != nil || more || diff != "" {
		t.Errorf("files: %v, %v, %s", more, err, diff)
	}
	if names, more, err := f.Files(1); err != nil || !more || len(names) != 1 {
		t.Errorf("one file: %v, %v, %v", names, more, err)
	}
	if data, err := os.ReadFile(outside); err != nil || string(data) != "keep" {
		t.Errorf("the file outside: %q, %v", data, err)
	}
	if _, err := OpenFolder(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there: no error")
	}
}

func TestIsPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"8.8.8.8": true, "93.184.216.34": true, "2606:4700:4700::1111": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "10.1.2.3": false, "172.31.0.1": false, "192.168.0.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"0.0.0.0": false, "255.255.255.255": false, "224.0.0.1": false, "198.18.0.1": false, "::1": false, "::": false, "fe80::1%eth0": false,
		"fc00::1": false, "::ffff:127.0.0.1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2001:db8::1": false, "ff02::1": false,
		"::7f00:1": false, "2001::1": false, "168.63.129.16": false, "fec0::1": false,
	} {
		if got := IsPublic(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: %v, want %v", address, got, want)
		}
	}
	if IsPublic(netip.Addr{}) {
		t.Error("no address is public")
	}
}

func TestPublicURL(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://example.com/a?b=c": true, "http://8.8.8.8:8080/": true, "https://[2606:4700:4700::1111]/": true,
		"ftp://example.com": false, "file:///etc/passwd": false, "example.com": false, "https://": false, "http://:80/": false, "//example.com": false, "%zz": false,
		"http://user:pw@example.com/": false, "http://127.0.0.1/": false, "http://[::1]:80/": false, "http://localhost:80/": false,
		"http://LOCALHOST./": false, "http://db.internal/": false, "http://printer.local": false, "http://169.254.169.254/latest": false,
	} {
		_, err := PublicURL("url", address)
		if ok != (err == nil) || !ok && !refused(err) {
			t.Errorf("%s: %v, want ok %v", address, err, ok)
		}
	}
}

func TestPublicClient(t *testing.T) {
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { t.Error("a private server was reached") }))
	defer inside.Close()
	client := PublicClient(0)
	defer client.CloseIdleConnections()
	for _, address := range []string{inside.URL, strings.Replace(inside.URL, "127.0.0.1", "localhost", 1)} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", address, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(req)
		if err == nil {
			res.Body.Close()
		}
		if !errors.Is(err, errPrivate) {
			t.Errorf("%s: %v, want %v", address, err, errPrivate)
		}
	}
	redirect, err := http.NewRequestWithContext(t.Context(), "GET", "http://10.0.0.1/", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := client.CheckRedirect(redirect, nil); !refused(err) {
		t.Errorf("a redirect to a private address: %v", err)
	}
	redirect.URL.Host = "example.com"
	if err := client.CheckRedirect(redirect, make([]*http.Request, 5)); err == nil {
		t.Error("a sixth redirect: no error")
	}
	if _, err := ReadAll(strings.NewReader("12345"), 4); !refused(err) {
		t.Errorf("too long a body: %v", err)
	}
	if data, err := ReadAll(strings.NewReader("1234"), 4); err != nil || string(data) != "1234" {
		t.Errorf("a body: %q, %v", data, err)
	}
}

func TestPlainArgument(t *testing.T) {
	for text, ok := range map[string]bool{
		"main": true, "release/1.2": true, "北京": true, "a b": true, "user@host:path": true,
		"": false, "  ": false, "--upload-pack=x": false, "a;b": false, "a|b": false, "$(x)": false, "`x`": false, "a\nb": false, "a&b": false,
		"a>b": false, "*": false, "a\x00": false, "a\x7fb": false, "a\u0085b": false, "%PATH%": false, "'": false, `"`: false, "~": false,
	} {
		if err := PlainArgument("ref", text); ok != (err == nil) || !ok && !refused(err) {
			t.Errorf("%q: %v, want ok %v", text, err, ok)
		}
	}
}

func TestKey(t *testing.T) {
	k := &Key{Env: "TOOLKIT_TEST_KEY", Hint: "get one at https://keys.example"}
	for value, want := range map[string]string{
		"": "environment variable TOOLKIT_TEST_KEY is not set: get one at https://keys.example", "  ": "is not set", "a\nb": "has a line break", " good ": "",
	} {
		t.Setenv(k.Env, value)
		if err := k.present(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", value, err, want)
		}
	}
	t.Setenv(k.Env, " secret-7 ")
	if k.Value() != "secret-7" {
		t.Errorf("value %q", k.Value())
	}
	var log sink
	loggingTo(&log).Info("key", "key", k)
	if strings.Contains(log.String()+k.String()+k.GoString(), "secret-7") {
		t.Error("the secret shows")
	}
	k.Check = func(_ context.Context, value string) error { return errors.New("the service says 401") }
	if err := k.try(t.Context()); err == nil || err.Error() != "environment variable TOOLKIT_TEST_KEY does not work: the service says 401" {
		t.Errorf("check: %v", err)
	}
}
