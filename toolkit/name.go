package toolkit

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxName is the length that fits every model API beside a short prefix.
const maxName = 64

// verbs are the actions that tool names may begin with; [Options.Verbs] adds to
// them.
var verbs = strings.Fields(`
	add analyze apply approve archive assign attach book calculate cancel check clear close collect compare
	complete compute convert copy count create decode delete deploy describe detach diff disable download
	draft edit enable encode end evaluate execute explain export extract fetch filter find fork format generate
	get grant import insert inspect install invite join leave link list lock log lookup mark measure merge
	monitor move open order parse patch pause pay plan play post predict preview print publish pull purge push
	put query rank read rebuild receive record register reject release reload remove rename render reopen
	replace reply report request reserve reset resolve restart restore resume retry revert review revoke run
	save scan schedule search select send set share show sign snooze sort split start stop store submit
	subscribe suggest summarize sync tag test track transfer translate trigger unassign unlink unlock
	unsubscribe update upload upsert validate verify view vote watch write`)

var (
	snake   = regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	dated   = regexp.MustCompile(`(^|[-_.])(v[0-9]+|20[0-9]{2})([-_.]|$)`)
	machine = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)
)

// serverName is the name that a server of that service has:
// {service}-mcp-server.
func serverName(service string) string {
	return strings.ReplaceAll(service, "_", "-") + "-mcp-server"
}

func checkServerName(service, name string) error {
	if service != "" && !snake.MatchString(service) {
		return fmt.Errorf("the Service %q: use lower-case words joined by _, such as \"github\"", service)
	}
	if dated.MatchString(name) {
		return fmt.Errorf("server name %q: leave out versions and dates, a name lasts longer", name)
	}
	switch {
	case name == "":
		return errors.New("give Options.Service or, for tools without a prefix, Options.Name")
	case service != "" && name != serverName(service):
		return fmt.Errorf("server name %q: a server of %q is called %q", name, service, serverName(service))
	case !machine.MatchString(name):
		return fmt.Errorf("server name %q: use lower-case words joined by -, such as \"weather-mcp-server\"", name)
	}
	return nil
}

// checkToolName wants {service}_{action}_{resource}; without a service
// {action}_{resource}.
func checkToolName(service, name string, extra []string) error {
	if !snake.MatchString(name) {
		return errors.New("names are lower-case words joined by _, such as \"github_create_issue\"")
	}
	if len(name) > maxName {
		return fmt.Errorf("the name has %d characters, at most %d fit every client", len(name), maxName)
	}
	rest, wanted := name, "{action}_{resource}"
	if service != "" {
		var ok bool
		wanted = service + "_" + wanted
		if rest, ok = strings.CutPrefix(name, service+"_"); !ok {
			return fmt.Errorf("names of this server begin with the service: %s", wanted)
		}
	}
	action, resource, _ := strings.Cut(rest, "_")
	if !slices.Contains(verbs, action) && !slices.Contains(extra, action) {
		return fmt.Errorf("%q is not a known verb; names are %s (add a verb with Options.Verbs)", action, wanted)
	}
	if resource == "" {
		return fmt.Errorf("the name does not say what is acted on; names are %s", wanted)
	}
	return nil
}
