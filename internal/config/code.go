package config

import (
	"fmt"
	"slices"

	"github.com/dragoman-mcp/dragoman/internal/reach/servers"
	"github.com/dragoman-mcp/dragoman/internal/text/commandline"
)

// checkCode reports an argument of a server that makes its command run code from the
// arguments (see [commandline.Code]), unless somebody wrote it there for us: a
// variable or an input does not turn a command into another one, and neither does
// another client's file, which programs and projects write, too. What such a file has
// in env is looked at as well (see [commandline.CodeVariable]).
func (d *decoder) checkCode(n *node, path string, c servers.Config) {
	const instead = "If you know the code and want it, write this server into the configuration of dragoman."
	if name := commandline.CodeVariable(c.Env); name != "" && d.lenient {
		place := n
		if value := n.get("env").get(name); value != nil {
			place = value
		}
		key := join(join(path, "env"), name)
		d.fail(place, key, key+": this variable makes programs run code from its value, and the file is another client's", instead)
	}
	at := commandline.Code(c.Command, c.Args)
	if at < 0 {
		return
	}
	key := fmt.Sprintf("%s.args[%d]", path, at)
	place := n
	if args := n.get("args"); args != nil && at < len(args.items) {
		place = args.items[at]
	}
	const runs = "%s: this argument makes the command run code from its arguments, and %s"
	if d.lenient {
		d.fail(place, key, fmt.Sprintf(runs, key, "the file is another client's"), instead)
		return
	}
	command, args := c.Command, slices.Clone(c.Args)
	if ref, ok := d.refs[path+".command"]; ok {
		command = ref.written
	}
	for i := range args {
		if ref, ok := d.refs[fmt.Sprintf("%s.args[%d]", path, i)]; ok {
			args[i] = ref.written
		}
	}
	if commandline.Code(command, args) != at {
		d.fail(place, key, fmt.Sprintf(runs, key, "that is so because of what a variable holds"),
			"If you want it, write the command, and the arguments up to this one, without ${…}.")
	}
}
