package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// built is (s): what it takes to build the command with nothing built before, modules
// downloaded, as a first "go run ./cmd/dragoman" has to, and how large it is as built and
// as released. Once, not in rounds: a build takes minutes of both processors.
func (b *bench) built(ctx context.Context) error {
	wall, cpu, size, released := figures{}, figures{}, figures{}, figures{}
	sources := map[contender]string{}
	root, err := repository(ctx)
	if err != nil {
		return err
	}
	sources[ours] = root
	if source := filepath.Join(b.dir, "before"); exists(source) {
		sources[before] = source
	}
	for who, source := range sources {
		cache, binary := filepath.Join(b.dir, "cold"), filepath.Join(b.dir, "cold-dragoman")
		began := time.Now()
		cmd := exec.CommandContext(ctx, "go", "build", "-o", binary, command)
		cmd.Dir, cmd.Env = source, append(os.Environ(), "GOCACHE="+cache)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build dragoman: %w\n%s", err, out)
		}
		wall[who] = []float64{time.Since(began).Seconds()}
		cpu[who] = []float64{(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()}
		if size[who], err = sized(binary); err != nil {
			return err
		}
		strip := exec.CommandContext(ctx, "go", "build", "-ldflags", "-s -w", "-o", binary, command)
		strip.Dir, strip.Env = source, cmd.Env
		if out, err := strip.CombinedOutput(); err != nil {
			return fmt.Errorf("build dragoman: %w\n%s", err, out)
		}
		if released[who], err = sized(binary); err != nil {
			return err
		}
		if err := os.RemoveAll(cache); err != nil {
			return err
		}
	}
	b.add(row{item: cold, what: "build with empty caches: seconds", figures: wall, show: duration})
	b.add(row{item: cold, what: "CPU time", figures: cpu, show: duration})
	b.add(row{item: cold, what: "the binary", figures: size, show: mebibytes})
	b.add(row{item: cold, what: "the binary as it is released", figures: released, show: mebibytes})
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func sized(path string) ([]float64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return []float64{float64(info.Size())}, nil
}
