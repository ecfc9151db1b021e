package loglevel

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

// A package that is named logs at its own level, and the rest as before.
func TestLevelsOfPackages(t *testing.T) {
	for name, test := range map[string]struct {
		rest     slog.Level
		packages map[string]string
		want     string
	}{
		"more":    {slog.LevelInfo, map[string]string{"loglevel": "debug"}, "debug info with"},
		"less":    {slog.LevelDebug, map[string]string{"loglevel": "error"}, ""},
		"another": {slog.LevelInfo, map[string]string{"mcp": "debug"}, "info with"},
		"none":    {slog.LevelInfo, nil, "info with"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			levels := New(test.rest, test.packages)
			log := slog.New(levels.Handler(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: levels.Level()})))
			log.Debug("debug")
			log.Info("info")
			log.With("a", 1).WithGroup("g").Info("with")
			var got []string
			for line := range strings.Lines(out.String()) {
				_, rest, _ := strings.Cut(line, "msg=")
				got = append(got, strings.Fields(rest)[0])
			}
			if strings.Join(got, " ") != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}
