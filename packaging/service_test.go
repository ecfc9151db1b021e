package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// maxExposure is how exposed the service may be, by systemd's own judgement, in
// tenths: 0 is best, 100 worst. A service without any of these lines has 96.
const maxExposure = "15"

func TestServiceIsHardened(t *testing.T) {
	analyze := need(t, "systemd-analyze", "systemd")
	out, err := exec.Command(analyze, "security", "--offline=true", "--no-pager", "--threshold="+maxExposure, "dragoman.service").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestServiceIsValid(t *testing.T) {
	analyze := need(t, "systemd-analyze", "systemd")
	root := t.TempDir()
	units := filepath.Join(root, "usr", "lib", "systemd", "system")
	for _, dir := range []string{units, filepath.Join(root, "etc"), filepath.Join(root, "usr", "bin")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	targets, _ := filepath.Glob("/usr/lib/systemd/system/*.target")
	if len(targets) == 0 {
		targets, _ = filepath.Glob("/lib/systemd/system/*.target")
	}
	for _, target := range append(targets, "dragoman.service") {
		text, err := os.ReadFile(target)
		if err != nil {
			continue // a link to nothing
		}
		if err := os.WriteFile(filepath.Join(units, filepath.Base(target)), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "usr", "bin", "dragoman"), []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyze, "--root="+root, "verify", "dragoman.service").CombinedOutput()
	if err != nil || len(out) > 0 { // a misspelt key is a warning alone
		t.Errorf("%v\n%s", err, out)
	}
}
