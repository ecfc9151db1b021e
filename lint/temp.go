package lint

import (
	"os"
	"slices"
)

// withTemp runs what starts processes with a folder for their temporary files, and keeps
// what calls that failed have left in it.
func (w *watcher) withTemp(run func()) {
	if w.target.Command != nil && w.probe != ProbeNone {
		if dir, err := os.MkdirTemp("", "dragoman-lint-"); err == nil {
			defer os.RemoveAll(dir)
			w.temp = dir
		}
	}
	run()
	there := w.inTemp()
	for _, name := range w.made {
		if slices.Contains(there, name) {
			w.record.write(func(l *Live) { l.Left = append(l.Left, name) })
		}
	}
}

// inTemp lists what is in the folder for temporary files.
func (w *watcher) inTemp() (names []string) {
	if w.temp == "" {
		return nil
	}
	entries, _ := os.ReadDir(w.temp) // none: nothing is left
	for _, e := range entries {
		if e.Type().IsRegular() {
			names = append(names, e.Name())
		}
	}
	return names
}

// newIn returns the names that are not among others.
func newIn(names, others []string) []string {
	return slices.DeleteFunc(names, func(name string) bool { return slices.Contains(others, name) })
}
