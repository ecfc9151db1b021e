// Package release has the tools that make a release, in a module of its own,
// since they are large, and a check of how the release is described.
package release

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/goreleaser/goreleaser/v2/pkg/config"
)

// TestConfig reads .goreleaser.yaml as goreleaser does, which knows every key.
// The whole of it is tried by "make snapshot"; this takes a second.
func TestConfig(t *testing.T) {
	project, err := config.Load(filepath.Join("..", "..", ".goreleaser.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range project.Builds {
		if !slices.Contains(b.Env, "CGO_ENABLED=0") || !slices.Contains(b.Flags, "-trimpath") {
			t.Errorf("build %s is neither static nor reproducible: %v %v", b.ID, b.Env, b.Flags)
		}
	}
	for _, pkg := range project.NFPMs {
		for _, c := range pkg.Contents {
			if c.FileInfo.MTime == "" {
				t.Errorf("%s has the time of the build, so that no two packages are the same", c.Destination)
			}
		}
	}
}
