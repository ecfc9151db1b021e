package gateway

import (
	"context"
	"crypto/sha256"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/dragoman-mcp/dragoman/internal/config"
	"github.com/dragoman-mcp/dragoman/internal/state/watchedfile"
)

// A follower has the configuration read again when its files have changed, and have
// stayed as they are from one look to the next: nobody is done who writes.
type follower struct {
	last map[string]config.Sum // at the last look
	done map[string]config.Sum // what was read again already, for better or worse
}

// follow follows the files of the configuration until ctx ends, while that says watch.
func (g *Gateway) follow(ctx context.Context) {
	if g.o.Read == nil {
		return
	}
	f := &follower{}
	for ctx.Err() == nil {
		g.look(ctx, f, *g.named.Load())
	}
}

// look looks at these files for as long as they are those of the configuration.
func (g *Gateway) look(ctx context.Context, f *follower, paths []string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	still := func() bool { return slices.Equal(paths, *g.named.Load()) }
	if len(paths) == 0 {
		for tick := time.NewTicker(time.Second); still() && ctx.Err() == nil; {
			select {
			case <-tick.C:
			case <-ctx.Done():
				tick.Stop()
			}
		}
		return
	}
	files := watchedfile.New(func() (map[string]config.Sum, error) { return sums(paths), nil }, paths...)
	files.Watch(ctx, func() {
		now, err := files.Now()
		if err == nil && f.settled(now, g.inEffect(now)) {
			f.done = now
			_, _ = g.Reload(ctx, false) // which logs what came of it
		}
		if !still() {
			cancel()
		}
	})
}

// settled reports whether files are to be read again that are like this now.
func (f *follower) settled(now map[string]config.Sum, inEffect bool) bool {
	same := maps.Equal(f.last, now)
	f.last = now
	return same && !inEffect && !maps.Equal(now, f.done)
}

// inEffect reports whether nothing has to be done about files that are like this: they
// are what counts, and nothing else was said of them since, or nobody wants them followed.
func (g *Gateway) inEffect(now map[string]config.Sum) bool {
	s := g.now.Load()
	return !s.file.Watch || maps.Equal(now, s.read) && g.refused.Load() == nil
}

// sums are what stands in files.
func sums(paths []string) map[string]config.Sum {
	all := map[string]config.Sum{}
	for _, path := range paths {
		all[path] = sumOf(path)
	}
	return all
}

// maxWatched bounds a file that is looked at, in bytes: more of it changes nothing.
const maxWatched = 32 << 20

// sumOf is what stands in a file; zero where it cannot be read.
func sumOf(path string) (sum config.Sum) {
	file, err := os.Open(path)
	if err != nil {
		return sum
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, io.LimitReader(file, maxWatched)); err != nil {
		return sum
	}
	hash.Sum(sum[:0])
	return sum
}
