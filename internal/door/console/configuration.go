package console

import (
	"strings"

	"github.com/dragoman-mcp/dragoman/internal/identity/permission"
)

type configurationData struct {
	Path     string
	Text     string
	Warnings []string
	Refused  string
	Done     *reloaded
	Reloads  bool // the person may have it read again
}

// reloaded is what came of reading the configuration again, or of a look at it.
type reloaded struct {
	Check        bool
	Now, Restart []string
	Why          string // it is wrong, and nothing changed
}

func (c *Console) configuration(r *request) error { return c.configurationAfter(r, nil) }

func (c *Console) configurationAfter(r *request, done *reloaded) error {
	if err := r.granted(permission.Config); err != nil {
		return err
	}
	now := c.o.Now()
	d := configurationData{Path: now.Path, Text: string(now.File()), Warnings: now.Warnings, Done: done, Reloads: r.who.May(permission.Reload)}
	if c.o.Refused != nil {
		d.Refused = c.o.Refused()
	}
	return c.show(r, "configuration.html", view{Title: "Configuration", Here: Root + "configuration", Data: d})
}

// reload has the configuration read again, or only looked at.
func (c *Console) reload(r *request) error {
	if err := c.recent(r); err != nil {
		return err
	}
	if err := r.granted(permission.Reload); err != nil {
		return err
	}
	said, err := c.posted(r)
	if err != nil {
		return err
	}
	done := &reloaded{Check: said.Get("check") != ""}
	done.Now, done.Restart, err = c.o.Reload(r.Context(), done.Check)
	if err != nil {
		done.Why = strings.TrimSpace(err.Error())
	}
	c.o.Log.Info("asked at the console to read the configuration again", append(r.who.Logged(), "check", done.Check)...)
	if err := r.granted(permission.Config); err != nil {
		return back(r, Root, "Read again.")
	}
	return c.configurationAfter(r, done)
}

// Some reports whether anything has changed.
func (r *reloaded) Some() bool { return len(r.Now)+len(r.Restart) > 0 }
