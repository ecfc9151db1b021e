package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

const command = "./cmd/dragoman"

// binaries builds what is to be measured, and what it is compared with as it was
// before: a binary, or a revision of this repository.
func (b *bench) binaries(ctx context.Context, before string) (err error) {
	if b.binary == "" {
		root, err := repository(ctx)
		if err != nil {
			return err
		}
		b.binary = filepath.Join(b.dir, "dragoman")
		if err := build(ctx, root, b.binary); err != nil {
			return err
		}
	}
	b.before = before
	if before == "" {
		return nil
	}
	if info, err := os.Stat(before); err == nil && info.Mode().IsRegular() {
		b.older, err = filepath.Abs(before)
		return err
	}
	b.older, err = b.revision(ctx, before)
	return err
}

// revision builds the command of a revision of this repository.
func (b *bench) revision(ctx context.Context, name string) (string, error) {
	root, err := repository(ctx)
	if err != nil {
		return "", err
	}
	source := filepath.Join(b.dir, "before")
	if err := os.Mkdir(source, 0o700); err != nil {
		return "", err
	}
	archive := filepath.Join(b.dir, "before.tar")
	for _, args := range [][]string{
		{"git", "-C", root, "archive", "--output", archive, name},
		{"tar", "-x", "-f", archive, "-C", source},
	} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("unpack revision %s: %w\n%s", name, err, out)
		}
	}
	path := filepath.Join(b.dir, "dragoman-before")
	return path, build(ctx, source, path)
}

// repository is the root of the module that this program was started in.
func repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the source of dragoman: %w", err)
	}
	return string(out[:max(0, len(out)-1)]), nil
}

func build(ctx context.Context, source, path string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-o", path, command)
	cmd.Dir = source
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build dragoman: %w\n%s", err, out)
	}
	return nil
}
