package edgecloud

import "github.com/interlock-go/interlock/fsm"

// The actors of the document. A cloudlet that is upgraded has two CRMs for a
// while, the old one and the new one.
const (
	User       fsm.Actor = "user"       // a person, or a program in a person's place
	CRM        fsm.Actor = "crm"        // the cloudlet resource manager: does the work and reports its progress
	Controller fsm.Actor = "controller" // coordinates: prepares, acknowledges, undoes
	CRMv1      fsm.Actor = "crm-v1"     // the CRM that an upgrade replaces
	CRMv2      fsm.Actor = "crm-v2"     // the CRM that an upgrade starts
)
