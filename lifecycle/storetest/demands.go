package storetest

import "slices"

// demands returns all demands in the order of the documentation: those of one
// group stand together.
func demands() []demand {
	return slices.Concat(
		capabilityDemands(),
		getDemands(),
		commitDemands(),
		metadataDemands(),
		numberDemands(),
		tokenDemands(),
		batchDemands(),
		historyDemands(),
		messageDemands(),
		listDemands(),
		timeDemands(),
		nameDemands(),
		endDemands(),
		networkDemands(),
		restartDemands(),
		concurrentDemands(),
		modelDemands(),
	)
}
