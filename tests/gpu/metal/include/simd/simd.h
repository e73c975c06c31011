// Nothing that kernels need.
#pragma once
