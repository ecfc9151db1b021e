package packaging

import (
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// images builds and runs images with buildah, in a place of their own.
type images struct {
	t       *testing.T
	program string
	global  []string
	context string
}

func newImages(t *testing.T) *images {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("images are for Linux")
	}
	i := &images{t: t, program: need(t, "buildah", "buildah"), context: t.TempDir()}
	if os.Getuid() != 0 {
		t.Skip("SKIPPED, NOT TESTED: buildah runs as root here")
	}
	dir := t.TempDir()
	i.global = []string{"--root", filepath.Join(dir, "root"), "--runroot", filepath.Join(dir, "run"), "--storage-driver", "vfs"}
	platform := filepath.Join(i.context, "linux", runtime.GOARCH)
	if err := os.MkdirAll(platform, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(binary(t), filepath.Join(platform, "dragoman")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(i.context, "packaging"), os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *images) buildah(args ...string) string {
	i.t.Helper()
	return strings.TrimSpace(output(i.t, nil, i.program, append(slices.Clone(i.global), args...)...))
}

// from builds an image and starts a container of it.
func (i *images) from(file string, args ...string) (container string) {
	i.t.Helper()
	name := "localhost/dragoman:" + strings.ToLower(filepath.Ext(file) + "test")[1:]
	args = append([]string{"bud", "--isolation", "chroot", "--platform", "linux/" + runtime.GOARCH, "-f", file, "-t", name}, args...)
	i.buildah(append(args, i.context)...)
	return i.buildah("from", "--pull=never", name)
}

func (i *images) run(container string, args ...string) string {
	i.t.Helper()
	return i.buildah(append([]string{"run", "--isolation", "chroot", container, "--", "/usr/bin/dragoman"}, args...)...)
}

// settings are what an image says about how it is run.
type settings struct {
	User            string
	Env, Entrypoint []string
	Cmd             []string
}

func (i *images) settings(container string) (s settings) {
	i.t.Helper()
	var inspected struct{ OCIv1 struct{ Config settings } }
	if err := json.Unmarshal([]byte(i.buildah("inspect", container)), &inspected); err != nil {
		i.t.Fatal(err)
	}
	return inspected.OCIv1.Config
}

// TestImage builds the image from nothing, and lets it do its work: answer with
// a tool of the demo server that writes into the temporary folder.
func TestImage(t *testing.T) {
	i := newImages(t)
	c := i.from("Dockerfile")
	if got := i.run(c, "chat", "-q", "What is the weather in Beijing?"); !strings.Contains(got, "22 °C") {
		t.Errorf("it answers %q", got)
	}
	if got := i.run(c, "call", "delete_file", "path=notes.txt", "--raw"); !strings.Contains(got, "content") {
		t.Errorf("a file of the scratch folder: %q", got)
	}
	s := i.settings(c)
	if s.User != "65532:65532" || !slices.Equal(s.Entrypoint, []string{"/usr/bin/dragoman"}) {
		t.Errorf("it is run as %+v", s)
	}
	// Beyond its own loopback it wants a key.
	args := append(slices.Clone(i.global), "run", "--isolation", "chroot", c, "--", "/usr/bin/dragoman")
	out, err := exec.Command(i.program, append(args, s.Cmd...)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "needs a key") {
		t.Errorf("without a key: %v\n%s", err, out)
	}
}

// TestNodeImage builds the image for npx servers on nothing in place of Node,
// since the base may be out of reach: every line of the file is carried out.
func TestNodeImage(t *testing.T) {
	i := newImages(t)
	c := i.from("Dockerfile.node", "--build-arg", "BASE=scratch")
	if got := i.run(c, "version"); !strings.HasPrefix(got, "dragoman ") {
		t.Errorf("it says %q", got)
	}
	if s := i.settings(c); s.User != "1000:1000" || !slices.Contains(s.Env, "HOME=/home/node") {
		t.Errorf("it is run as %+v", s)
	}
}

// TestVolumes: each folder that an image says to mount a volume at is in it, and belongs to
// whom it is run as. A new volume takes its owner from there; where there is no folder it
// belongs to root, and nothing can be kept in it.
func TestVolumes(t *testing.T) {
	mounted := regexp.MustCompile(`(?:-v \w+:|a volume at |one at\s+# )(/[\w./]+\w)`)
	copied := regexp.MustCompile(`(?m)^COPY --chown=(\S+) packaging/(\S+) (\S+)$`)
	for file, volumes := range map[string]int{"Dockerfile": 1, "Dockerfile.node": 2} {
		read, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		said := string(read)
		all := mounted.FindAllStringSubmatch(said, -1)
		if len(all) != volumes {
			t.Errorf("%s names the volumes %q", file, all)
		}
		for _, m := range all {
			if !slices.ContainsFunc(copied.FindAllStringSubmatch(said, -1), func(c []string) bool {
				below, ok := strings.CutPrefix(m[1]+"/", c[3]+"/")
				info, err := os.Stat(filepath.Join(c[2], below))
				return ok && err == nil && info.IsDir() && strings.Contains(said, "\nUSER "+c[1]+"\n")
			}) {
				t.Errorf("%s has no folder %s of its user's", file, m[1])
			}
		}
	}
}

// TestStatic wants a binary that needs nothing of the system.
func TestStatic(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("for Linux")
	}
	f, err := elf.Open(binary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic loader")
		}
	}
	if libraries, _ := f.ImportedLibraries(); len(libraries) > 0 {
		t.Errorf("it needs %v", libraries)
	}
}
