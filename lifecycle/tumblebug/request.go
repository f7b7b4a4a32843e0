package tumblebug

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/lifecycle"
)

// MciReq is the request for an MCI.
type MciReq struct {
	Name      string
	SubGroups []SubGroup
	Hold      bool // stop in Prepared until continue or withdraw
	// Attributes are content of the program that uses the package, such as labels: a JSON
	// value, or nil. The package does not read them.
	// They count towards [lifecycle.Limits].Payload of the MCI, which is 1 MiB.
	Attributes json.RawMessage
}

// SubGroup is a number of equal VMs in one region. The names of its VMs are web-1,
// web-2 and so on.
type SubGroup struct {
	Name     string
	Size     int // 0: 1
	Provider string
	Region   string
	Spec     string
	Image    string
	// Attributes are those of each VM of the group, as in [MciReq]. Requests to the
	// provider contain them.
	Attributes json.RawMessage `json:",omitempty"`
}

// MaxVMs is the greatest number of VMs of one request.
const MaxVMs = 10_000

// check returns [lifecycle.ErrInvalid] for a malformed request.
func (r *MciReq) check() error {
	if err := checkNames("MCI", r.Name); err != nil {
		return err
	}
	vms := vmNames{}
	for i := range r.SubGroups {
		g := &r.SubGroups[i]
		if err := checkNames("SubGroup", g.Name, "provider", g.Provider, "region", g.Region); err != nil {
			return err
		}
		if g.Size < 0 {
			return fmt.Errorf("%w: SubGroup %q of %d VMs", lifecycle.ErrInvalid, g.Name, g.Size)
		}
		for n := range g.size() {
			if err := vms.add(g.vm(n)); err != nil {
				return err
			}
		}
	}
	return vms.check(r.Name)
}

// vmNames are the names of the VMs of a request.
type vmNames map[string]bool

// add returns [lifecycle.ErrInvalid] for a name that is malformed or is given twice.
func (n vmNames) add(name string) error {
	if n[name] {
		return fmt.Errorf("%w: two VMs %q", lifecycle.ErrInvalid, name)
	}
	if n[name] = true; len(n) > MaxVMs {
		return fmt.Errorf("%w: an MCI has at most %d VMs", lifecycle.ErrInvalid, MaxVMs)
	}
	return checkNames("VM", name)
}

// check returns [lifecycle.ErrInvalid] for an MCI without VMs.
func (n vmNames) check(mci string) error {
	if len(n) == 0 {
		return fmt.Errorf("%w: MCI %q has no VM", lifecycle.ErrInvalid, mci)
	}
	return nil
}

func (g *SubGroup) size() int { return max(g.Size, 1) }

// vm returns the name of a VM of the group, from 0 on.
func (g *SubGroup) vm(n int) string { return fmt.Sprintf("%s-%d", g.Name, n+1) }

// spec returns the content of a VM of the group.
func (g *SubGroup) spec(mci *mciRecord) VMSpec {
	return VMSpec{
		MCI: mci.ID, Life: mci.Payload.Life, Asked: mci.Operation,
		SubGroup: g.Name, Provider: g.Provider, Region: g.Region, Spec: g.Spec, Image: g.Image,
		Attributes: g.Attributes,
	}
}

// size returns the number of VMs that the MCI was requested with.
func (m *MCISpec) size() (n int) {
	for i := range m.SubGroups {
		n += m.SubGroups[i].size()
	}
	return n
}

// maxName is the greatest length of a name in bytes: three names and two slashes are
// an id.
const maxName = 63

var validName = regexp.MustCompile(`^[A-Za-z0-9._-]+\z`).MatchString

// checkNames returns [lifecycle.ErrInvalid] for names that cannot be a part of an id or of
// a path of limits. The arguments are pairs of a kind and a name.
func checkNames(pairs ...string) error {
	for pair := range slices.Chunk(pairs, 2) {
		name := pair[1]
		if len(name) > maxName || strings.Trim(name, ".") == "" || !validName(name) {
			return fmt.Errorf("%w: %s name %q: use at most %d letters, digits, dots, dashes and underscores",
				lifecycle.ErrInvalid, pair[0], name, maxName)
		}
	}
	return nil
}
