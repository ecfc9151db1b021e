package packaging

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

const dist = "../dist"

// files returns what the release has, by a pattern; at least so many.
func files(t *testing.T, pattern string, least int) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dist, pattern))
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < least {
		t.Errorf("%d files are %s, not %d", len(found), pattern, least)
	}
	return found
}

func TestSnapshotHasChecksums(t *testing.T) {
	snapshot(t)
	list, err := os.Open(filepath.Join(dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer list.Close()
	sums := map[string]string{}
	for lines := bufio.NewScanner(list); lines.Scan(); {
		sum, name, _ := strings.Cut(lines.Text(), "  ")
		sums[name] = sum
	}
	for _, pattern := range []string{"*.tar.gz", "*.zip", "*.deb", "*.rpm", "*.apk"} {
		for _, path := range files(t, pattern, 1) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(data)
			if sums[filepath.Base(path)] != hex.EncodeToString(sum[:]) {
				t.Errorf("%s has another checksum than the list says", path)
			}
		}
	}
}

func TestSnapshotArchives(t *testing.T) {
	snapshot(t)
	want := []string{"LICENSE", "README.md", "README.zh-CN.md", "CHANGELOG.md", "completions/dragoman.bash"}
	for _, path := range files(t, "*.tar.gz", 5) { // Linux on three, macOS on two
		if names := inTar(t, path); !contains(names, append(want, "dragoman")) {
			t.Errorf("%s has %v", path, names)
		}
	}
	for _, path := range files(t, "*.zip", 2) {
		archive, err := zip.OpenReader(path)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range archive.File {
			names = append(names, f.Name)
		}
		archive.Close()
		if !contains(names, append(want, "dragoman.exe")) {
			t.Errorf("%s has %v", path, names)
		}
	}
}

func inTar(t *testing.T, path string) (names []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for archive := tar.NewReader(z); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
}

func contains(names, want []string) bool {
	return !slices.ContainsFunc(want, func(name string) bool { return !slices.Contains(names, name) })
}

// TestSnapshotComponents reads the lists of components, one for each platform.
func TestSnapshotComponents(t *testing.T) {
	snapshot(t)
	for _, path := range files(t, "*.cdx.json", 7) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			BOMFormat  string
			Components []struct{ Name, Version string }
		}
		if err := json.Unmarshal(data, &list); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		var names []string
		for _, c := range list.Components {
			names = append(names, c.Name)
		}
		if list.BOMFormat != "CycloneDX" || !contains(names, []string{"std", "github.com/spf13/cobra"}) {
			t.Errorf("%s is a %s of %v", path, list.BOMFormat, names)
		}
	}
}

// TestSnapshotPackages looks at the packages that cannot be installed here.
func TestSnapshotPackages(t *testing.T) {
	snapshot(t)
	for _, path := range files(t, "*.rpm", 3) {
		if data, err := os.ReadFile(path); err != nil || !bytes.HasPrefix(data, []byte("\xed\xab\xee\xdb")) {
			t.Errorf("%s is no rpm: %v", path, err)
		}
	}
	for _, path := range files(t, "*_linux_*.apk", 3) {
		// An apk is three archives in a row; the reader of the first shows all.
		names := strings.Join(apkNames(t, path), " ")
		if !strings.Contains(names, ".PKGINFO") || !strings.Contains(names, "usr/bin/dragoman") || strings.Contains(names, "systemd") {
			t.Errorf("%s has %s", path, names)
		}
	}
}

// apkNames lists an apk, whose archives have no end marks between them.
func apkNames(t *testing.T, path string) (names []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.NewReader(data)
	for all.Len() > 0 {
		z, err := gzip.NewReader(all)
		if err != nil {
			t.Fatal(err)
		}
		z.Multistream(false)
		for archive := tar.NewReader(z); ; {
			header, err := archive.Next()
			if err != nil {
				break
			}
			names = append(names, header.Name)
		}
		if _, err := io.Copy(io.Discard, z); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// TestSnapshotInstalls installs the Debian package into an empty root, runs it
// there, and removes it again.
func TestSnapshotInstalls(t *testing.T) {
	snapshot(t)
	if runtime.GOOS != "linux" {
		t.Skip("for Linux")
	}
	dpkg := need(t, "dpkg", "dpkg")
	found := files(t, "*_linux_"+runtime.GOARCH+".deb", 1)
	if len(found) != 1 {
		t.Fatalf("the packages for this machine are %v", found)
	}
	root := t.TempDir()
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var", "lib", "dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "var", "lib", "dpkg", "status"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	forced := []string{"--root=" + root, "--force-not-root", "--force-script-chrootless", "--log=" + filepath.Join(root, "log")}
	output(t, nil, dpkg, append(forced, "--install", found[0])...)

	program := filepath.Join(root, "usr", "bin", "dragoman")
	env := []string{"HOME=" + t.TempDir(), "XDG_CONFIG_HOME=", "OPENAI_BASE_URL=", "OPENAI_API_KEY="}
	if got := output(t, env, program, "version"); !strings.Contains(got, "-snapshot.") {
		t.Errorf("its version is %s", got)
	}
	if got := output(t, env, program, "chat", "-q", "What is the weather in Beijing?"); !strings.Contains(got, "22 °C") {
		t.Errorf("it answers %q", got)
	}
	output(t, env, program, "check", "--config", filepath.Join(root, "etc", "dragoman", "config.yaml"))
	if info, err := os.Stat(filepath.Join(root, "etc", "dragoman", "environment")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file for secrets: %v %v", info, err)
	}
	for _, file := range []string{"usr/lib/systemd/system/dragoman.service", "usr/share/bash-completion/completions/dragoman", "usr/share/doc/dragoman/copyright"} {
		if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil {
			t.Error(err)
		}
	}
	output(t, nil, dpkg, append(forced, "--purge", "dragoman")...)
	if _, err := os.Stat(program); err == nil {
		t.Error("the program is still there after removing the package")
	}
}

// TestReproducible builds one commit twice, in two places, once with what the
// build cache has and once from nothing, and wants the same bytes.
func TestReproducible(t *testing.T) {
	snapshot(t)
	archive := exec.Command("git", "archive", "--format=tar", "HEAD")
	archive.Dir = ".."
	tree, err := archive.Output()
	if err != nil {
		t.Fatalf("git archive: %v", err)
	}
	var sums [2][sha256.Size]byte
	for i := range sums {
		dir := filepath.Join(t.TempDir(), strings.Repeat("deeper/", i)+"source")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		extract := exec.Command("tar", "-x", "-C", dir)
		extract.Stdin = bytes.NewReader(tree)
		if out, err := extract.CombinedOutput(); err != nil {
			t.Fatalf("tar: %v\n%s", err, out)
		}
		binary := filepath.Join(t.TempDir(), "dragoman")
		var env []string
		if i > 0 {
			env = []string{"GOCACHE=" + t.TempDir()}
		}
		if err := build(dir, binary, env...); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(binary)
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = sha256.Sum256(data)
	}
	if sums[0] != sums[1] {
		t.Errorf("one commit gave two binaries: %x and %x", sums[0], sums[1])
	}
}
