package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// probes are what a program can try, each with an argument. They return nil where it
// was allowed.
var probes = map[string]func(string) error{
	"read": func(path string) error { _, err := os.ReadFile(path); return err },
	"list": func(path string) error { _, err := os.ReadDir(path); return err },
	"run":  func(path string) error { return exec.Command(path).Run() },
	"change": func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
		if err != nil {
			return err
		}
		return f.Close()
	},
	"truncate": func(path string) error { return os.Truncate(path, 0) },
	"remove":   os.Remove,
	"move": func(path string) error {
		to := filepath.Join(filepath.Dir(filepath.Dir(path)), "moved")
		return os.Rename(path, to)
	},
	"connect": func(address string) error {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	},
	"listen": func(address string) error {
		l, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		return l.Close()
	},
	"datagram": func(address string) error {
		conn, err := net.Dial("udp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	},
	"post": func(path string) error { // by a pair, of which one end names somebody else
		for _, kind := range []int{syscall.SOCK_DGRAM | syscall.SOCK_CLOEXEC, syscall.SOCK_RAW} {
			pair, err := syscall.Socketpair(syscall.AF_UNIX, kind, 0)
			if err == nil {
				return syscall.Sendto(pair[0], []byte("text"), 0, &syscall.SockaddrUnix{Name: path})
			}
			if !errors.Is(err, syscall.EACCES) {
				return err
			}
		}
		return syscall.EACCES
	},
	"pair": func(string) error {
		for _, kind := range []int{syscall.SOCK_STREAM | syscall.SOCK_CLOEXEC, syscall.SOCK_SEQPACKET} {
			pair, err := syscall.Socketpair(syscall.AF_UNIX, kind, 0)
			if err != nil {
				return err
			}
			if _, err := syscall.Write(pair[0], []byte("text")); err != nil {
				return err
			}
		}
		return nil
	},
	"abstract": func(name string) error {
		conn, err := net.Dial("unix", "@"+name)
		if err != nil {
			return err
		}
		return conn.Close()
	},
	"signal": func(pid string) error {
		n, err := strconv.Atoi(pid)
		if err != nil {
			return err
		}
		return syscall.Kill(n, 0)
	},
	"limit": func(pid string) error { // to what it is
		n, err := strconv.Atoi(pid)
		if err != nil {
			return err
		}
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_CORE, &limit); err != nil {
			return err
		}
		if _, _, errno := syscall.RawSyscall6(uintptr(sysPrlimit), uintptr(n), syscall.RLIMIT_CORE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
			return errno
		}
		return nil
	},
	"inherited": func(number string) error { // a descriptor that is open from the start
		n, err := strconv.Atoi(number)
		if err != nil {
			return err
		}
		var stat syscall.Stat_t
		if err := syscall.Fstat(n, &stat); err == syscall.EBADF {
			return syscall.EPERM
		}
		return err
	},
	"temp": func(string) error { return os.WriteFile(filepath.Join(os.TempDir(), "x"), nil, 0o600) },
	"lock": func(string) error { // folders that may not be changed, and one that may not be read
		dir := filepath.Join(os.TempDir(), "a", "b", "c")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		for _, mode := range []os.FileMode{0, 0o500, 0o500, 0o500} {
			if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
				return err
			}
			if err := os.Chmod(dir, mode); err != nil {
				return err
			}
			dir = filepath.Dir(dir)
		}
		return nil
	},
	"gain": func(string) error { // the bit of no_new_privs has to be there
		status, err := os.ReadFile("/proc/thread-self/status")
		if err == nil && strings.Contains(string(status), "NoNewPrivs:\t1") {
			err = syscall.EPERM
		}
		return err
	},
}

// TestMain lets the test program try something instead of testing.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "probe" {
		for _, probe := range os.Args[2:] {
			name, argument, _ := strings.Cut(probe, " ")
			err := probes[name](argument)
			switch {
			case err == nil:
				fmt.Println("allowed")
			case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EXDEV):
				fmt.Println("denied")
			default:
				fmt.Println(err)
			}
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// needLandlock skips, loudly, where the kernel has no Landlock, or not that version;
// where CI is set it fails.
func needLandlock(t *testing.T, version int) {
	t.Helper()
	if abi := Landlock(); abi < version {
		t.Logf("NOT TESTED: this kernel has version %d of Landlock, and this needs %d", abi, version)
		if os.Getenv("CI") != "" {
			t.FailNow()
		}
		t.SkipNow()
	}
}

// self is the test program.
func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	path, err = filepath.EvalSymlinks(path)
	must(t, err)
	return path
}

// try runs probes under a guard, in a sandbox unless that is nil, and returns what
// came of each.
func try(t *testing.T, box *Sandbox, probes ...string) []string {
	t.Helper()
	program, args, alive, ok := Around(self(t), append([]string{"probe"}, probes...), box)
	if !ok {
		t.Fatal("there are no guards")
	}
	cmd := exec.Command(program, args...)
	cmd.ExtraFiles = []*os.File{alive}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return []string{fmt.Sprintf("%v: %s", err, errs.String())}
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

// What a sandbox denies, a server could do without it; and what it grants, it can.
func TestSandbox(t *testing.T) {
	needLandlock(t, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	abstract := "dragoman-test-" + strconv.Itoa(os.Getpid())
	hidden, err := net.Listen("unix", "@"+abstract)
	must(t, err)
	defer hidden.Close()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	for _, name := range []string{"outside", "readable", "writable/sub"} {
		must(t, os.MkdirAll(filepath.Join(dir, name), 0o700))
	}
	for _, name := range []string{"outside/secret", "readable/note", "writable/note", "writable/sub/note", "file"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("text"), 0o600))
	}
	for _, name := range []string{"outside/program", "readable/program"} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\nexit 0\n"), 0o700))
	}
	for _, name := range []string{"readable/link", "writable/link"} {
		must(t, os.Symlink(filepath.Join(dir, "outside/secret"), filepath.Join(dir, name)))
	}
	letterbox, err := net.ListenPacket("unixgram", filepath.Join(dir, "outside/socket"))
	must(t, err)
	defer letterbox.Close()
	tests := []struct {
		probe   string // {} stands for the folder of the test
		want    string // in the sandbox; without it everything is allowed
		version int    // of Landlock
	}{
		{"read {}/readable/note", "allowed", 1},
		{"list {}/readable", "allowed", 1},
		{"run {}/readable/program", "allowed", 1},
		{"read {}/writable/sub/note", "allowed", 1},
		{"truncate {}/writable/sub/note", "allowed", 1},
		{"move {}/writable/sub/note", "allowed", 2},
		{"change {}/writable/sub/new", "allowed", 1},
		{"remove {}/writable/sub/new", "allowed", 1},
		{"change {}/file", "allowed", 1},
		{"temp", "allowed", 1},
		{"pair", "allowed", 1},
		{"limit 0", "allowed", 1},

		{"list {}/outside", "denied", 1},
		{"run {}/outside/program", "denied", 1},
		{"read {}/outside/secret", "denied", 1},
		{"read {}/readable/link", "denied", 1},
		{"read {}/readable/../outside/secret", "denied", 1},
		{"read /proc/self/environ", "denied", 1},
		{"change {}/writable/link", "denied", 1},
		{"change {}/outside/secret", "denied", 1},
		{"change {}/outside/new", "denied", 1},
		{"truncate {}/outside/secret", "denied", 3},
		{"remove {}/outside/secret", "denied", 1},
		{"change {}/readable/note", "denied", 1},
		{"truncate {}/readable/note", "denied", 3},
		{"remove {}/readable/note", "denied", 1},
		{"move {}/writable/note", "denied", 1},
		{"remove {}/file", "denied", 1},
		{"connect " + listener.Addr().String(), "denied", 1},
		{"listen 127.0.0.1:0", "denied", 1},
		{"datagram 127.0.0.1:9", "denied", 1},
		{"abstract " + abstract, "denied", 1},
		{"post {}/outside/socket", "denied", 1},
		{"signal " + strconv.Itoa(os.Getpid()), "denied", 6},
		{"limit " + strconv.Itoa(os.Getpid()), "denied", 1},
	}
	var all, denied []string
	for i := range tests {
		tests[i].probe = strings.ReplaceAll(tests[i].probe, "{}", dir)
		all = append(all, tests[i].probe)
		if tests[i].want == "denied" {
			denied = append(denied, tests[i].probe)
		}
	}
	box := &Sandbox{
		Read: []string{self(t), filepath.Join(dir, "readable")}, Temp: true,
		Write: []string{filepath.Join(dir, "writable"), filepath.Join(dir, "file")},
	}
	inside := try(t, box, all...)
	if len(inside) != len(all) {
		t.Fatalf("the probes in the sandbox came to %q", inside)
	}
	for i, tt := range tests {
		if abi := Landlock(); abi < tt.version {
			t.Logf("NOT TESTED: %s: this kernel has version %d of Landlock", tt.probe, abi)
			continue
		}
		if inside[i] != tt.want {
			t.Errorf("%s in the sandbox is %s, want %s", tt.probe, inside[i], tt.want)
		}
	}
	for i, got := range try(t, nil, denied...) {
		if got != "allowed" {
			t.Errorf("%s without a sandbox is %s", denied[i], got)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// With a network all sockets are to be had, but for those of processes outside that
// have no place in the file system; and no limits can be set for those processes.
func TestSandboxWithNetwork(t *testing.T) {
	needLandlock(t, 6)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	abstract := "dragoman-test-network-" + strconv.Itoa(os.Getpid())
	hidden, err := net.Listen("unix", "@"+abstract)
	must(t, err)
	defer hidden.Close()
	got := try(t, &Sandbox{Read: []string{self(t)}, Network: true}, "connect "+listener.Addr().String(), "listen 127.0.0.1:0", "datagram 127.0.0.1:9", "abstract "+abstract, "limit "+strconv.Itoa(os.Getpid()), "limit 0")
	if !slices.Equal(got, []string{"allowed", "allowed", "allowed", "denied", "denied", "allowed"}) {
		t.Errorf("to connect, to listen, to send, an abstract socket, and limits of ours and of its own are %q", got)
	}
}

// Even with /proc to read, nothing is learned of processes outside but what all may
// know; and programs that run as somebody else (setuid) gain nothing.
func TestSandboxGainsNothing(t *testing.T) {
	needLandlock(t, 1)
	probes := []string{fmt.Sprintf("read /proc/%d/environ", os.Getpid()), "gain"}
	if got := try(t, &Sandbox{Read: []string{self(t), "/proc"}}, probes...); !slices.Equal(got, []string{"denied", "denied"}) {
		t.Errorf("our environment and new privileges are %q", got)
	}
	if got := try(t, nil, probes[0]); got[0] != "allowed" {
		t.Errorf("without a sandbox our environment is %s", got[0])
	}
}

// What whoever started us left open for us, a server without a sandbox has, too; one
// in a sandbox does not.
func TestSandboxInheritsNothing(t *testing.T) {
	needLandlock(t, 1)
	file, err := os.Open(os.DevNull)
	must(t, err)
	defer file.Close()
	open, err := syscall.Dup(int(file.Fd())) // and so not closed by exec
	must(t, err)
	defer syscall.Close(open)
	probe := "inherited " + strconv.Itoa(open)
	for want, box := range map[string]*Sandbox{"allowed": nil, "denied": {Read: []string{self(t)}}} {
		if got := try(t, box, probe); got[0] != want {
			t.Errorf("with the sandbox %v, descriptor %d is %s, want %s", box, open, got[0], want)
		}
	}
}

// A sandbox that cannot be had is no reason to start without one.
func TestSandboxOrNothing(t *testing.T) {
	needLandlock(t, 1)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink("/etc", link))
	for _, path := range []string{"/no/such/folder", link, link + "/ssl"} {
		got := try(t, &Sandbox{Read: []string{self(t), path}}, "temp")
		if !strings.Contains(got[0], "exit status 127") || !strings.Contains(got[0], path) {
			t.Errorf("with %s it came to %q", path, got)
		}
	}
}

// The folder for temporary files is gone when the server is, also where the way to it
// leads through a link, and where the server may not change it itself (which stops
// nobody who is root).
func TestSandboxLeavesNoFiles(t *testing.T) {
	needLandlock(t, 1)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(t.TempDir(), link))
	t.Setenv("TMPDIR", link)
	if got := try(t, &Sandbox{Read: []string{self(t)}, Temp: true}, "temp", "lock"); !slices.Equal(got, []string{"allowed", "allowed"}) {
		t.Errorf("it came to %q", got)
	}
	left, err := os.ReadDir(os.TempDir())
	must(t, err)
	if len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("sandboxed\x00network\x00temp\x00read:/a\x00write:/b\x00--\x00/bin/x\x00--\x00read:/c")
	f.Add("--\x00/bin/x")
	f.Add("read:/a\x00--\x00/bin/x")
	f.Fuzz(func(t *testing.T, text string) {
		box, command, err := parse(strings.Split(text, "\x00"))
		if err != nil {
			return
		}
		again, rest, err := parse(append(append(box.words(), theEnd), command...))
		if err != nil || !slices.Equal(rest, command) || (again == nil) != (box == nil) {
			t.Fatalf("%q came back as %v, %q: %v", text, again, rest, err)
		}
		if box != nil && (again.Network != box.Network || again.Temp != box.Temp || !slices.Equal(again.Read, box.Read) || !slices.Equal(again.Write, box.Write)) {
			t.Fatalf("%q came back as %v", text, again)
		}
	})
}
