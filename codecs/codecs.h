/* codecs.h: the codecs there are, for the registry alone. */
#ifndef GX_CODECS_H
#define GX_CODECS_H

#include "codecs/codec.h"

extern const gx_codec gx_codec_raw;
extern const gx_codec gx_codec_gpubp128, gx_codec_gpubp256;
extern const gx_codec gx_codec_gpuvbyte128, gx_codec_gpuvbyte1024;
extern const gx_codec gx_codec_lane1024;
extern const gx_codec gx_codec_gpupfd128;
extern const gx_codec gx_codec_simple9, gx_codec_simple16, gx_codec_simple8b;
extern const gx_codec gx_codec_eliasfano;
extern const gx_codec gx_codec_varintsu, gx_codec_varintpu, gx_codec_varintg8iu, gx_codec_varintg8cu, gx_codec_varintpb, gx_codec_varintgb;
extern const gx_codec gx_codec_rice, gx_codec_pfordelta;

#endif
